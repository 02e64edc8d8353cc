"""Coding tools as models: each is started as a process and spoken to in the Agent Client Protocol, over its standard
input and output (https://agentclientprotocol.com, version 1).

    relay --HTTP, OpenAI's dialect--> application --> sessions --> tool --JSON-RPC lines--> a tool's process

In reading order: `config` (values from the supervisor), `provider` (the connection in the snapshot),
`application` (its HTTP surface on loopback), `chat` (a request, and the messages for a tool), `answer` (the
answer to the caller), `sessions` (which process a call gets), `tool` (one process and its conversation),
`permissions`, `peer` (JSON-RPC), `process` and `launcher` (the process and its limits), `process_session` (its
end). `fault` has the errors.
"""
