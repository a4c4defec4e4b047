"""The methods of the service with the types of their messages, so that type checkers know them."""

from typing import Final

from actors.sessions._wire.code_mode_pb2 import (
    AcknowledgeNotificationRequest,
    AcknowledgeNotificationResponse,
    CancelWaitRequest,
    CancelWaitResponse,
    CloseSessionRequest,
    CloseSessionResponse,
    CompleteToolCallRequest,
    CompleteToolCallResponse,
    ExecuteEvent,
    ExecuteRequest,
    GetProcessMetricsRequest,
    GetProcessMetricsResponse,
    OpenSessionRequest,
    SessionEvent,
    SubscribeToToolCallsRequest,
    TerminateRequest,
    ToolCall,
    WaitRequest,
    WaitResponse,
    YieldObservationRequest,
    YieldObservationResponse,
)
from actors.sessions.grpc import protobuf_method

_AT: Final = "/codex.code_mode.v1.CodeModeHost/"

OPEN_SESSION: Final = protobuf_method(_AT + "OpenSession", OpenSessionRequest, SessionEvent, server_streaming=True)
CLOSE_SESSION: Final = protobuf_method(_AT + "CloseSession", CloseSessionRequest, CloseSessionResponse)
SUBSCRIBE_TO_TOOL_CALLS: Final = protobuf_method(
    _AT + "SubscribeToToolCalls", SubscribeToToolCallsRequest, ToolCall, server_streaming=True
)
COMPLETE_TOOL_CALL: Final = protobuf_method(_AT + "CompleteToolCall", CompleteToolCallRequest, CompleteToolCallResponse)
ACKNOWLEDGE_NOTIFICATION: Final = protobuf_method(
    _AT + "AcknowledgeNotification", AcknowledgeNotificationRequest, AcknowledgeNotificationResponse
)
EXECUTE: Final = protobuf_method(_AT + "Execute", ExecuteRequest, ExecuteEvent, server_streaming=True)
WAIT: Final = protobuf_method(_AT + "Wait", WaitRequest, WaitResponse)
YIELD_OBSERVATION: Final = protobuf_method(_AT + "YieldObservation", YieldObservationRequest, YieldObservationResponse)
CANCEL_WAIT: Final = protobuf_method(_AT + "CancelWait", CancelWaitRequest, CancelWaitResponse)
TERMINATE: Final = protobuf_method(_AT + "Terminate", TerminateRequest, WaitResponse)
GET_PROCESS_METRICS: Final = protobuf_method(
    _AT + "GetProcessMetrics", GetProcessMetricsRequest, GetProcessMetricsResponse
)
