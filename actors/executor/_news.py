"""Write the news of a process as it travels."""

import json
from binascii import b2a_base64

from actors.protocol import NEWS, PROCESS_OUTPUT, Notification, ProcessEvent, ProcessOutput, encode_message

__all__ = ["encode_news"]

_NEWS_OF = {news.params: news for news in NEWS.values()}


def encode_news(event: ProcessEvent) -> bytes:
    """Write one event as one message."""
    if isinstance(event, ProcessOutput):
        return _encode_output(event)
    news = _NEWS_OF[type(event)]
    return encode_message(Notification(news.name, news.encode_params(event)))


def _encode_output(event: ProcessOutput) -> bytes:
    # Put together by hand: the JSON encoder looks at each of 80,000 letters that need no escape, 270 us of 330 a chunk.
    # Proof that the bytes are the codec's: test_output_is_written_as_the_codec_would.
    head = (
        f'{{"method":"{PROCESS_OUTPUT.name}","params":{{"processId":{json.dumps(event.process_id, ensure_ascii=False)},'
        f'"seq":{event.seq},"stream":"{event.stream.value}","chunk":"'
    )
    return b"".join((head.encode(), b2a_base64(event.chunk, newline=False), b'"}}'))
