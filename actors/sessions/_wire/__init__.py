"""The code-session service as both its ends write it: `code_mode_pb2` has the messages, `_methods` the methods."""
