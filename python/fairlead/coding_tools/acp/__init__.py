"""Coding tools as models: each is started as a process and spoken to in the Agent Client Protocol, over its standard
input and output (https://agentclientprotocol.com, version 1).

    relay --HTTP, OpenAI's dialect--> application --> sessions --> tool --JSON-RPC lines--> a tool's process

In reading order: `config` (what the supervisor hands over), `provider` (the connection in the snapshot), `application`
(its HTTP surface on loopback), `chat` (a request, and what a tool is told of it), `answer` (what a caller is told),
`sessions` (which process a call gets), `tool` (one process and its conversation), `permissions`, `peer` (JSON-RPC),
`process` and `launcher` (the process and its bounds), `process_session` (its end). `fault` are the errors.
"""
