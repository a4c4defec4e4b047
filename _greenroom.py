"""The `greenroom` program, from its first moment: an interrupt ends it at once and in silence while it is imported.

It stands outside the packages, as importing any module of theirs first imports what they all need.
"""


def main() -> int:
    """Run the command line and give its exit code; 130 after an interrupt, however early."""
    try:
        import gc
        import signal

        # Who has us ignore interrupts (`nohup`, a shell's background) still does.
        may_be_interrupted = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if may_be_interrupted:
            signal.signal(signal.SIGINT, _end_at_once)
        gc.disable()  # An import leaves next to no garbage, and to look for it takes a twentieth of the time.
        try:
            from actors.cli import command_line

            command = command_line()
        finally:
            gc.enable()
        if may_be_interrupted:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return command()
    except KeyboardInterrupt:
        return 130


def _end_at_once(*_: object) -> None:
    """End without an exception: an import may swallow that, or wrap it. Nothing is open yet that would need closing."""
    import os

    os._exit(130)
