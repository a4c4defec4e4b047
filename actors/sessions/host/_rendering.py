"""Write what was kept of an observation within a budget of tokens, with a notice for each gap."""

from collections.abc import Iterator
from typing import Final

import attrs

from actors.sessions._audio import audio_tokens
from actors.sessions._cutting import BYTES_PER_TOKEN, header_of, middle_cut, tokens_of
from actors.sessions.host._items import AudioItem, Item, TextItem
from actors.sessions.host._retention import Entry, Gap, Retention

_NOTICES_MAX: Final = 4


@attrs.frozen
class _Text:
    """One text, its halves joined again, with the gaps in it by position."""

    data: bytes
    gaps: tuple[tuple[int, Gap], ...] = ()


_Piece = _Text | Item | Gap


def render(kept: Retention, tokens: int) -> list[Item]:
    """Make the final content items.

    Args:
        kept: The observation, its error already added as the last text.
        tokens: The budget; 0 keeps no text.
    """
    pieces = [*_pieces_of(kept)]
    write = _render_mixed if kept.media_seen else _render_texts
    return _with_notices([*write(pieces, tokens)])


def _pieces_of(kept: Retention) -> Iterator[_Piece]:
    held: Entry | None = None  # A text whose second half may follow.
    for entry in kept:
        if entry.remainder and held is not None:
            gaps = () if entry.gap is None else ((len(held.data), entry.gap),)
            yield _Text(held.data + entry.data, gaps)
            held = None
            continue
        if held is not None:
            yield from _alone(held)
            held = None
        if entry.gap is not None:
            yield entry.gap
        if entry.item is not None:
            yield from _alone(entry)
        else:
            held = entry
    if held is not None:
        yield from _alone(held)
    if kept.end_gap is not None:
        yield kept.end_gap


def _alone(entry: Entry) -> Iterator[_Piece]:
    yield _Text(entry.data) if entry.item is None else entry.item
    if entry.gap_behind is not None:
        yield entry.gap_behind


def _render_texts(pieces: list[_Piece], tokens: int) -> Iterator[Item | Gap]:
    joined = bytearray()
    gaps: list[tuple[int, Gap]] = []
    waiting: list[Gap] = []  # A gap stands where the text behind it starts, after the newline.
    for piece in pieces:
        if isinstance(piece, Gap):
            waiting.append(piece)
        elif isinstance(piece, _Text):
            if joined:
                joined += b"\n"
            gaps += [(len(joined), gap) for gap in waiting]
            waiting.clear()
            gaps += [(len(joined) + at, gap) for at, gap in piece.gaps]
            joined += piece.data
    gaps += [(len(joined), gap) for gap in waiting]
    if len(joined) <= tokens * BYTES_PER_TOKEN:
        for piece in pieces:
            if isinstance(piece, _Text):
                yield from _whole(piece)
            else:
                yield piece
        return
    text = bytes(joined)
    yield from _cut(_Text(text, tuple(gaps)), tokens, header_of(text))


def _render_mixed(pieces: list[_Piece], tokens: int) -> Iterator[Item | Gap]:
    budget = _Budget(tokens)
    for piece in pieces:
        if isinstance(piece, _Text):
            yield from budget.text(piece)
        elif isinstance(piece, AudioItem):
            yield from budget.audio(piece)
        else:
            yield piece
    if budget.texts_omitted:
        yield TextItem(f"[omitted {budget.texts_omitted} text items ...]")
    if budget.audios_omitted:
        yield TextItem(f"[omitted {budget.audios_omitted} audio items ...]")


class _Budget:
    """What is left to spend on a row of mixed items; images are free."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens
        self.texts_omitted = self.audios_omitted = 0

    def text(self, piece: _Text) -> Iterator[Item | Gap]:
        if not piece.data:
            return
        cost = tokens_of(len(piece.data))
        if self._tokens == 0:
            self.texts_omitted += 1
            yield from (gap for _, gap in piece.gaps)
        elif cost <= self._tokens:
            self._tokens -= cost
            yield from _whole(piece)
        else:
            yield from _cut(piece, self._tokens, b"")
            self._tokens = 0

    def audio(self, piece: AudioItem) -> Iterator[Item]:
        cost = audio_tokens(piece.audio_url)
        if cost <= self._tokens:
            self._tokens -= cost
            yield piece
        else:
            self.audios_omitted += 1


def _whole(piece: _Text) -> Iterator[Item | Gap]:
    start = 0
    for at, gap in piece.gaps:
        yield TextItem(piece.data[start:at].decode())
        yield gap
        start = at
    yield TextItem(piece.data[start:].decode())


def _cut(piece: _Text, tokens: int, header: bytes) -> Iterator[Item | Gap]:
    """Cut one text in the middle; each gap splits what is kept, or follows the marker."""
    cut = middle_cut(piece.data, tokens)
    assert cut is not None, "only a text over the budget is cut"
    # The header leads the first piece that has any text: a notice may stand before it.
    lead, start = header, 0
    behind: list[tuple[int, Gap]] = []
    for at, gap in piece.gaps:
        if at > cut.prefix_end:
            behind.append((at, gap))
            continue
        collected = piece.data[start:at]
        start = at
        if collected:
            yield TextItem((lead + collected).decode())
            lead = b""
        yield gap
    collected = lead + piece.data[start : cut.prefix_end] + cut.marker
    start = cut.suffix_start
    for at, gap in behind:
        collected += piece.data[start : max(start, at)]
        start = max(start, at)
        yield from _text(collected)
        collected = b""
        yield gap
    yield from _text(collected + piece.data[start:])


def _text(data: bytes) -> Iterator[Item]:
    if data:
        yield TextItem(data.decode())


def _with_notices(written: list[Item | Gap]) -> list[Item]:
    merged: list[Item | Gap] = []
    for piece in written:
        if isinstance(piece, Gap) and merged and isinstance(last := merged[-1], Gap):
            merged[-1] = last + piece
        else:
            merged.append(piece)
    gaps = [piece for piece in merged if isinstance(piece, Gap)]
    if len(gaps) <= _NOTICES_MAX:
        return [_notice(piece, "") if isinstance(piece, Gap) else piece for piece in merged]
    items: list[Item] = [piece for piece in merged if not isinstance(piece, Gap)]
    return [*items, _notice(sum(gaps, Gap()), "across this observation, ")]


def _notice(gap: Gap, where: str) -> TextItem:
    return TextItem(
        f"[Code Mode session output limit reached: {where}omitted {gap.text_bytes} text bytes; discarded "
        f"{gap.texts} text segments, {gap.images} images, {gap.audios} audio items]"
    )
