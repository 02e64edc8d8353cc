-- Aliases of models that were made for a coding tool. What an alias stands for is in `model_aliases`, which the router reads.

CREATE TABLE coding_tool_aliases (
    tool VARCHAR NOT NULL,
    alias VARCHAR NOT NULL PRIMARY KEY
);
