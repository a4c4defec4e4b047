%% Erlang/OTP: tell, ask and ask from 100 callers of a gen_server, per second of run time, on one scheduler.
-module(counter).
-behaviour(gen_server).
-export([main/1, init/1, handle_call/3, handle_cast/2]).

init(Total) -> {ok, Total}.
handle_call(Number, _From, Total) -> {reply, Total + Number, Total + Number}.
handle_cast(Number, Total) -> {noreply, Total + Number}.

times(0, _Work) -> ok;
times(Count, Work) -> Work(), times(Count - 1, Work).

%% Work on a fresh counter, prove that all was handled, and give the rate.
measured(Count, Work) ->
    {ok, Server} = gen_server:start(?MODULE, 0, []),
    {Before, _} = statistics(runtime),
    Begun = erlang:monotonic_time(nanosecond),
    Work(Server),
    Count = gen_server:call(Server, 0, infinity),
    Took = erlang:monotonic_time(nanosecond) - Begun,
    {After, _} = statistics(runtime),
    gen_server:stop(Server),
    Count / (max(1, min(After - Before, Took div 1000000)) / 1000).

tell(Server) -> times(500000, fun() -> gen_server:cast(Server, 1) end).
ask(Server) -> times(200000, fun() -> gen_server:call(Server, 1) end).
ask_from_100(Server) ->
    Me = self(),
    times(100, fun() -> spawn(fun() -> times(2000, fun() -> gen_server:call(Server, 1) end), Me ! done end) end),
    times(100, fun() -> receive done -> ok end end).

median(Numbers) -> lists:nth(length(Numbers) div 2 + 1, lists:sort(Numbers)).

main([Repeats]) ->
    Rounds = lists:seq(1, list_to_integer(atom_to_list(Repeats))),
    [Tell, Ask, Ask100] = [
        median([measured(Count, Work) || _ <- Rounds])
     || {Count, Work} <- [{500000, fun tell/1}, {200000, fun ask/1}, {200000, fun ask_from_100/1}]
    ],
    io:format("{\"tell\": ~.1f, \"ask\": ~.1f, \"ask100\": ~.1f}~n", [Tell, Ask, Ask100]).
