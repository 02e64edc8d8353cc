"""The clients of vendors, imported when a test first uses them: `from tests.support.sdks import openai`.

Every process of `pytest -n` collects every test file. The clients take seconds to import, and some thirty files use
them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["anthropic", "genai", "ollama", "openai"]

if TYPE_CHECKING:
    import anthropic
    import ollama
    import openai
    from google import genai
else:

    class Client:
        """A module that is imported when an attribute of it is read."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            # pytest asks each object of a test file for names of its own.
            if name.startswith("__"):
                raise AttributeError(name)
            return getattr(import_module(self._name), name)

    anthropic = Client("anthropic")
    genai = Client("google.genai")
    ollama = Client("ollama")
    openai = Client("openai")
