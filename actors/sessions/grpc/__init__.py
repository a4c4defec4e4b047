"""Call and serve gRPC methods over trio streams: a call is a cancel scope."""

from actors.sessions.grpc._channel import Channel as Channel
from actors.sessions.grpc._channel import ChannelOptions as ChannelOptions
from actors.sessions.grpc._channel import open_channel as open_channel
from actors.sessions.grpc._client_call import ClientCall as ClientCall
from actors.sessions.grpc._client_call import Reply as Reply
from actors.sessions.grpc._dialling import Dial as Dial
from actors.sessions.grpc._errors import Abort as Abort
from actors.sessions.grpc._errors import CallFailed as CallFailed
from actors.sessions.grpc._errors import CallGone as CallGone
from actors.sessions.grpc._errors import ChannelClosed as ChannelClosed
from actors.sessions.grpc._errors import GrpcError as GrpcError
from actors.sessions.grpc._errors import InvalidMetadata as InvalidMetadata
from actors.sessions.grpc._errors import MalformedCall as MalformedCall
from actors.sessions.grpc._errors import MessageTooLarge as MessageTooLarge
from actors.sessions.grpc._limits import KeepalivePolicy as KeepalivePolicy
from actors.sessions.grpc._limits import Limits as Limits
from actors.sessions.grpc._methods import RAW as RAW
from actors.sessions.grpc._methods import AnyMethod as AnyMethod
from actors.sessions.grpc._methods import Codec as Codec
from actors.sessions.grpc._methods import Method as Method
from actors.sessions.grpc._network import Target as Target
from actors.sessions.grpc._network import addresses_of as addresses_of
from actors.sessions.grpc._network import listen_tcp as listen_tcp
from actors.sessions.grpc._network import listen_unix as listen_unix
from actors.sessions.grpc._network import parse_target as parse_target
from actors.sessions.grpc._pairs import Metadata as Metadata
from actors.sessions.grpc._pairs import MetadataLike as MetadataLike
from actors.sessions.grpc._protobuf import details_of as details_of
from actors.sessions.grpc._protobuf import methods_of as methods_of
from actors.sessions.grpc._protobuf import protobuf_codec as protobuf_codec
from actors.sessions.grpc._protobuf import protobuf_method as protobuf_method
from actors.sessions.grpc._protobuf import rich_status as rich_status
from actors.sessions.grpc._protobuf import routes_of as routes_of
from actors.sessions.grpc._routes import Requests as Requests
from actors.sessions.grpc._routes import Route as Route
from actors.sessions.grpc._routes import Send as Send
from actors.sessions.grpc._routes import bidirectional as bidirectional
from actors.sessions.grpc._routes import client_stream as client_stream
from actors.sessions.grpc._routes import server_stream as server_stream
from actors.sessions.grpc._routes import unary as unary
from actors.sessions.grpc._routes import unary_now as unary_now
from actors.sessions.grpc._server import HandlerCrashed as HandlerCrashed
from actors.sessions.grpc._server import Server as Server
from actors.sessions.grpc._server import ServerOptions as ServerOptions
from actors.sessions.grpc._server import ServerStatistics as ServerStatistics
from actors.sessions.grpc._server_call import ServerCall as ServerCall
from actors.sessions.grpc._status import OK as OK
from actors.sessions.grpc._status import Status as Status
from actors.sessions.grpc._status import StatusCode as StatusCode

__all__ = [
    "OK",
    "RAW",
    "Abort",
    "AnyMethod",
    "CallFailed",
    "CallGone",
    "Channel",
    "ChannelClosed",
    "ChannelOptions",
    "ClientCall",
    "Codec",
    "Dial",
    "GrpcError",
    "HandlerCrashed",
    "InvalidMetadata",
    "KeepalivePolicy",
    "Limits",
    "MalformedCall",
    "MessageTooLarge",
    "Metadata",
    "MetadataLike",
    "Method",
    "Reply",
    "Requests",
    "Route",
    "Send",
    "Server",
    "ServerCall",
    "ServerOptions",
    "ServerStatistics",
    "Status",
    "StatusCode",
    "Target",
    "addresses_of",
    "bidirectional",
    "client_stream",
    "details_of",
    "listen_tcp",
    "listen_unix",
    "methods_of",
    "open_channel",
    "parse_target",
    "protobuf_codec",
    "protobuf_method",
    "rich_status",
    "routes_of",
    "server_stream",
    "unary",
    "unary_now",
]

for _name in __all__:
    if callable(_object := globals()[_name]) and getattr(_object, "__module__", "").startswith(__name__ + "."):
        _object.__module__ = __name__
