"""Robyn, imported while the command line is hidden from it: it parses `sys.argv` when it is imported."""

import sys

_arguments, sys.argv = sys.argv, sys.argv[:1]
try:
    from robyn import Headers, Request, Response, Robyn, StreamingResponse
    from robyn.argument_parser import Config
finally:
    sys.argv = _arguments

__all__ = ["Config", "Headers", "Request", "Response", "Robyn", "StreamingResponse"]
