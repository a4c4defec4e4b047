"""What a cell puts out: texts, images and sounds, in order."""

import attrs


@attrs.frozen
class TextItem:
    """A piece of text."""

    text: str
    """Whole code points only."""


@attrs.frozen
class ImageItem:
    """An image, as a data URL."""

    image_url: str
    """`data:...`; not looked into."""

    detail: str = "high"
    """`auto`, `low`, `high` or `original`."""


@attrs.frozen
class AudioItem:
    """A sound, as a data URL."""

    audio_url: str
    """`data:...`."""


Item = TextItem | ImageItem | AudioItem
"""One content item."""

Written = Item | bytes
"""One content item as a cell put it out: a text may still be the UTF-8 that it came as."""
