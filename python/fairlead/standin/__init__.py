"""The stand-in provider: an upstream for the demo, tests and benches that speaks as OpenAI does (chat and,
under `/v1/responses`, responses), under `/v1/messages` as Anthropic does and under `/v1beta` as
Gemini does.

It needs no network, runs in a separate process (`fairlead standin --port N`) on Robyn and is deterministic: the
same request body and the same directives give the same bytes, identifiers and times included.

Directives choose its behaviour. They are in the header `X-Standin` or, because a gateway does not forward that
header, after `@` in the model name; if both set a directive, the model name wins:

    X-Standin: chunks=20,gap_ms=10
    {"model": "standin@chunks=20,gap_ms=10", ...}

The directives are the fields of `directives.Directives`. The model before the `@` decides the text: `echo` repeats the
last user message, every other name answers with a fixed sentence.

It has limits: Robyn ends a stream only by its proper last chunk and always sends a whole body, so `cut_after`
stops a stream without its finish and `[DONE]`, yet the connection ends cleanly. A reset, a short body, a broken
header line and other faults below HTTP come from the scripted upstream of `tests/support`, not from here. Each
open stream holds a thread of Robyn's pool, so a bench of thousands of open streams needs another upstream.
"""
