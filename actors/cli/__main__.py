"""`python -m actors.cli` is `greenroom`."""

import sys

from actors.cli import main

if __name__ == "__main__":
    sys.exit(main())
