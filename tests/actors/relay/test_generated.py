"""The generated frames have the names and numbers that peers use. `.ci/run generated` tells whether they are fresh."""

from actors.relay import _relay_v1_pb2 as pb


def test_the_schema_has_the_names_and_numbers_that_peers_use() -> None:
    fields = {field.name: field.number for field in pb.RelayMessageFrame.DESCRIPTOR.fields}

    assert pb.DESCRIPTOR.package == "codex.exec_server.relay.v1"
    assert list(fields.items()) == [
        ("version", 1),
        ("stream_id", 2),
        ("ack", 3),
        ("ack_bits", 4),
        ("data", 5),
        ("ack_frame", 6),
        ("resume", 7),
        ("reset", 8),
        ("heartbeat", 9),
        ("handshake", 10),
        ("traceparent", 11),
        ("tracestate", 12),
    ]
