"""Cut one observation the slow and obvious way: the second opinion that the host's own cutting is held against.

Written from the description of Server mode alone, by someone who had not seen the host's modules. Everything is a list
of plain pieces, walked again for every step; nothing is counted on the side. A piece is one of

- a text: which item it came from, its bytes;
- an image or a sound: which item it came from, its address;
- a gap: what was left out here.
"""

from __future__ import annotations

import base64
import io
import wave
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

HEAD_BYTES = 524_288
TEXT_BYTES = 1_048_576
HEAD_SLOTS = 16_384
SLOTS = 32_768
IMAGE_BYTES = 8_388_608
SOUND_BYTES = 65_011_712


class Item(NamedTuple):
    """One thing a script produced, or one thing the caller gets."""

    kind: Literal["text", "image", "sound"]
    body: str
    detail: str = ""


class Limits(NamedTuple):
    """How much one observation keeps."""

    head_bytes: int = HEAD_BYTES
    text_bytes: int = TEXT_BYTES
    head_slots: int = HEAD_SLOTS
    slots: int = SLOTS
    image_bytes: int = IMAGE_BYTES
    sound_bytes: int = SOUND_BYTES


class Gap(NamedTuple):
    """What was left out at one place."""

    text_bytes: int = 0
    texts: int = 0
    images: int = 0
    sounds: int = 0


class Piece(NamedTuple):
    """An item, or the half of a split text, that is still held."""

    origin: int
    item: Item
    data: bytes = b""
    remainder: bool = False


Held = Piece | Gap


def sum_of(gaps: Iterable[Gap]) -> Gap:
    return Gap(*(sum(column) for column in zip(Gap(), *gaps, strict=True)))


def merged(held: Iterable[Held]) -> list[Held]:
    """Make one gap of neighbouring gaps."""
    result: list[Held] = []
    for piece in held:
        if isinstance(piece, Gap) and result and isinstance(result[-1], Gap):
            result[-1] = sum_of([result[-1], piece])
        else:
            result.append(piece)
    return result


def whole_characters(data: bytes, size: int) -> int:
    """Say how many of the first `size` bytes make whole characters."""
    size = min(size, len(data))
    while 0 < size < len(data) and data[size] & 0xC0 == 0x80:
        size -= 1
    return size


def next_character(data: bytes, start: int) -> int:
    """Say where the first character at or after `start` begins."""
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    return start


class Pile(list[Held]):
    """Pieces in order, with the bytes of each kind and their slots. Neighbouring gaps are one."""

    def __init__(self) -> None:
        self.size = {"text": 0, "image": 0, "sound": 0}
        self.slots = 0

    def put(self, place: int, removed: int, *pieces: Held) -> None:
        """Put pieces in the place of others, and join the gaps that become neighbours."""
        start, stop = max(place - 1, 0), place + removed + 1
        before = self[start:stop]
        after = merged([*self[start:place], *pieces, *self[place + removed : stop]])
        self[start:stop] = after
        for sign, some in ((-1, before), (1, after)):
            for piece in some:
                if isinstance(piece, Piece):
                    size = len(piece.data) if piece.item.kind == "text" else len(piece.item.body)
                    self.size[piece.item.kind] += sign * size
            self.slots += sign * sum(1 for piece in some if isinstance(piece, Gap) or not piece.remainder)


class NaiveBuffer:
    """Hold what one observation produced, within the limits."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.head = Pile()
        self.tail = Pile()
        self.head_open = True
        self.only_text = True
        self.produced = 0

    def add(self, item: Item) -> None:
        origin = self.produced
        self.produced += 1
        if item.kind != "text":
            self.only_text = False
        if item.kind == "image" and not self._fits(item, self.limits.image_bytes):
            self._append(Gap(images=1))
        elif item.kind == "sound" and not self._fits(item, self.limits.sound_bytes):
            self._append(Gap(sounds=1))
        else:
            self._append(Piece(origin, item, item.body.encode() if item.kind == "text" else b""))
        self._keep_bytes()
        self._keep_slots()

    def _fits(self, item: Item, most: int) -> bool:
        return self.head.size[item.kind] + self.tail.size[item.kind] + len(item.body) <= most

    def _append(self, piece: Held) -> None:
        if self.head.slots >= self.limits.head_slots:
            self.head_open = False
        if not self.head_open:
            self.tail.put(len(self.tail), 0, piece)
            return
        room = self.limits.head_bytes - self.head.size["text"]
        if isinstance(piece, Gap) or len(piece.data) <= room:
            self.head.put(len(self.head), 0, piece)
            return
        fits = whole_characters(piece.data, room)
        if fits:
            self.head.put(len(self.head), 0, piece._replace(data=piece.data[:fits]))
        self.tail.put(0, 0, piece._replace(data=piece.data[fits:], remainder=fits > 0))
        self.head_open = False

    def _keep_bytes(self) -> None:
        while (excess := self.head.size["text"] + self.tail.size["text"] - self.limits.text_bytes) > 0:
            place, piece = next(
                (place, piece) for place, piece in enumerate(self.tail) if isinstance(piece, Piece) and piece.data
            )
            start = next_character(piece.data, min(excess, len(piece.data)))
            if start == len(piece.data):
                self.tail.put(place, 1, Gap(text_bytes=len(piece.data), texts=1))
            else:
                self.tail.put(place, 1, Gap(text_bytes=start), piece._replace(data=piece.data[start:]))

    def _keep_slots(self) -> None:
        while self.head.slots + self.tail.slots > self.limits.slots:
            place, piece = next(
                (place, piece)
                for place, piece in enumerate(self.tail)
                if isinstance(piece, Piece) and not piece.remainder
            )
            kind = piece.item.kind
            self.tail.put(place, 1, Gap(len(piece.data), kind == "text", kind == "image", kind == "sound"))

    def held(self) -> list[Held]:
        return merged(self.head + self.tail)


# What the caller gets: items, and notices that are not yet worded


Part = Item | Gap


def tokens(size: int) -> int:
    return -(-size // 4)


def marker(count: int) -> bytes:
    return f"\u2026{count} tokens truncated\u2026".encode()


def middle_cut(data: bytes, budget: int) -> tuple[bytes, bytes, bytes]:
    """Cut the middle out: what stays in front, the marker, what stays behind."""
    if budget == 0:
        return b"", marker(tokens(len(data))), b""
    left = 4 * budget // 2
    right = 4 * budget - left
    front = whole_characters(data, left)
    back = max(front, next_character(data, max(len(data) - right, 0)))
    return data[:front], marker(tokens(len(data) - 4 * budget)), data[back:]


def cut_with_gaps(data: bytes, gaps: Sequence[tuple[int, Gap]], budget: int, heading: str) -> list[Part]:
    """Cut the middle out of a text in which gaps lie, each at its byte."""
    front, mark, back = middle_cut(data, budget)
    shown = front + mark + back
    start_of_back = len(data) - len(back)
    places: list[tuple[int, Gap]] = []
    for at, gap in gaps:
        if at <= len(front):
            places.append((at, gap))
        elif at <= start_of_back:
            places.append((len(front + mark), gap))
        else:
            places.append((len(front + mark) + at - start_of_back, gap))
    parts: list[Part] = []
    done = 0
    for at, gap in places:
        parts.append(Item("text", shown[done:at].decode()))
        parts.append(gap)
        done = at
    parts.append(Item("text", shown[done:].decode()))
    parts = [part for part in parts if isinstance(part, Gap) or part.body]
    first = next(place for place, part in enumerate(parts) if isinstance(part, Item))
    parts[first] = Item("text", heading + parts[first][1])  # type: ignore[operator]
    return parts


def rejoined(held: Sequence[Held]) -> list[Held]:
    """Join the halves of a split text between which nothing is missing."""
    result: list[Held] = []
    for piece in held:
        before = result[-1] if result else None
        if isinstance(before, Piece) and isinstance(piece, Piece) and before.origin == piece.origin:
            result[-1] = before._replace(data=before.data + piece.data)
        else:
            result.append(piece)
    return result


def shown_whole(piece: Piece) -> Item:
    return piece.item._replace(body=piece.data.decode()) if piece.item.kind == "text" else piece.item


def render_texts(held: Sequence[Held], budget: int) -> list[Part]:
    joined = bytearray()
    gaps: list[tuple[int, Gap]] = []
    last_origin: int | None = None
    waiting: list[Gap] = []
    for piece in held:
        if isinstance(piece, Gap):
            waiting.append(piece)
            continue
        if joined and piece.origin != last_origin:
            joined += b"\n"
        # A gap lies where the next text begins, behind the newline that joins it: this the recordings decided.
        gaps += [(len(joined), gap) for gap in waiting]
        waiting = []
        joined += piece.data
        last_origin = piece.origin
    gaps += [(len(joined), gap) for gap in waiting]
    if len(joined) <= 4 * budget:
        return [piece if isinstance(piece, Gap) else shown_whole(piece) for piece in rejoined(held)]
    lines = joined.count(b"\n") + (not joined.endswith(b"\n"))
    heading = (
        f"Warning: truncated output (original token count: {tokens(len(joined))})\nTotal output lines: {lines}\n\n"
    )
    return cut_with_gaps(bytes(joined), gaps, budget, heading)


def render_mixed(held: Sequence[Held], budget: int, cost_of: Callable[[str], int]) -> tuple[list[Part], list[str]]:
    parts: list[Part] = []
    omitted_texts = omitted_sounds = 0
    waiting = list(held)
    while waiting:
        piece = waiting.pop(0)
        if isinstance(piece, Gap):
            parts.append(piece)
        elif piece.item.kind == "image":
            parts.append(piece.item)
        elif piece.item.kind == "sound":
            cost = cost_of(piece.item.body)
            if cost <= budget:
                budget -= cost
                parts.append(piece.item)
            else:
                omitted_sounds += 1
        else:
            # The whole text, with the gap that may lie between its halves.
            data, gaps = piece.data, []
            inside: list[Gap] = []
            for place, later in enumerate(waiting):
                if isinstance(later, Piece):
                    if later.origin == piece.origin:
                        gaps = [(len(data), gap) for gap in inside]
                        data += later.data
                        del waiting[: place + 1]
                    break
                inside.append(later)
            if not data:
                parts.extend(gap for _, gap in gaps)
            elif tokens(len(data)) <= budget:
                budget -= tokens(len(data))
                start = 0
                for at, gap in gaps:
                    parts += [Item("text", data[start:at].decode()), gap]
                    start = at
                parts.append(Item("text", data[start:].decode()))
            elif budget > 0:
                parts += cut_with_gaps(data, gaps, budget, "")
                budget = 0
            else:
                omitted_texts += 1
                parts.extend(gap for _, gap in gaps)
    counted = [(omitted_texts, "text"), (omitted_sounds, "audio")]
    return parts, [f"[omitted {count} {kind} items ...]" for count, kind in counted if count]


def notice(gap: Gap, where: str = "") -> Item:
    return Item(
        "text",
        f"[Code Mode session output limit reached: {where}omitted {gap.text_bytes} text bytes; discarded "
        f"{gap.texts} text segments, {gap.images} images, {gap.sounds} audio items]",
    )


def render(buffer: NaiveBuffer, budget: int, cost_of: Callable[[str], int]) -> list[Item]:
    """Make the items of the answer of what was held."""
    last_lines: list[str] = []
    if buffer.only_text:
        parts = render_texts(buffer.held(), budget)
    else:
        parts, last_lines = render_mixed(buffer.held(), budget, cost_of)
    joined: list[Part] = []
    for part in parts:
        if isinstance(part, Gap) and joined and isinstance(joined[-1], Gap):
            joined[-1] = sum_of([joined[-1], part])
        else:
            joined.append(part)
    gaps = [part for part in joined if isinstance(part, Gap)]
    if len(gaps) > 4:
        items = [part for part in joined if isinstance(part, Item)]
        ending = [notice(sum_of(gaps), "across this observation, ")]
    else:
        items = [notice(part) if isinstance(part, Gap) else part for part in joined]
        ending = []
    return items + [Item("text", line) for line in last_lines] + ending


def cut_error(error: str) -> str:
    """Keep the ends of an error text that is too long."""
    data = error.encode()
    if len(data) <= 65_536:
        return error
    head = data[: whole_characters(data, 32_766)]
    tail = data[next_character(data, len(data) - 32_767) :]
    return head.decode() + "\u2026" + tail.decode()


def sound_cost(address: str) -> int:
    """Say what a sound costs: by its length when it is a WAVE clip, else by its address."""
    kind, _, body = address.partition(";base64,")
    if kind.lower().startswith("data:audio/"):
        try:
            with wave.open(io.BytesIO(base64.b64decode(body, validate=True))) as clip:
                frames = len(clip.readframes(clip.getnframes())) // (clip.getsampwidth() * clip.getnchannels())
                return -(-10 * int(frames) // int(clip.getframerate()))
        except (ValueError, EOFError, wave.Error):
            pass
    return tokens(len(address.encode()))


def truncate(
    items: Iterable[Item], error: str | None, budget: int | None, limits: Limits | None = None
) -> tuple[list[Item], str | None]:
    """Answer one observation in Server mode.

    Returns:
        The items of the answer and its error text.
    """
    buffer = NaiveBuffer(limits or Limits())
    for item in items:
        buffer.add(item)
    if error is not None:
        buffer.add(Item("text", "Script error:\n" + error))
    shown = render(buffer, 10_000 if budget is None else budget, sound_cost)
    return shown, None if error is None else cut_error(error)
