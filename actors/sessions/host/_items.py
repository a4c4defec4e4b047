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
