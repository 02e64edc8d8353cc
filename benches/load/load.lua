-- One request over and over, from the environment:
--   LOAD_HEADERS  "name: value" lines     LOAD_BODY  the JSON body
--   LOAD_KEYS     API keys, one a line, which follow each other; unset: none
--   LOAD_PAUSE_MS what each connection waits before a request; unset: nothing
-- At the end one line of JSON. No response callback: it would make wrk, which shares the cores with what it
-- measures, the bottleneck of short answers.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
for line in os.getenv("LOAD_HEADERS"):gmatch("[^\n]+") do
  local name, value = line:match("^(.-): (.*)$")
  wrk.headers[name] = value
end
wrk.body = os.getenv("LOAD_BODY")

local requests = {}
if os.getenv("LOAD_KEYS") then
  function init(_)
    for key in os.getenv("LOAD_KEYS"):gmatch("[^\n]+") do
      wrk.headers["Authorization"] = "Bearer " .. key
      requests[#requests + 1] = wrk.format()
    end
  end

  local at = 0
  function request()
    at = at % #requests + 1
    return requests[at]
  end
end

local pause = tonumber(os.getenv("LOAD_PAUSE_MS") or "")
if pause then
  function delay() return pause end
end

function done(summary, latency, _)
  local e = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"duration_us":%d,"bytes":%d,"p50_us":%d,"p99_us":%d,"max_us":%d,"refused":%d,"broken":%d}\n',
    summary.requests, summary.duration, summary.bytes, latency:percentile(50), latency:percentile(99), latency.max,
    e.status, e.connect + e.read + e.write + e.timeout))
end
