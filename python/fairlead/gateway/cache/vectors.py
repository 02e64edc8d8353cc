"""The condition for turning on the vector tier of the cache."""

from __future__ import annotations

from fairlead.errors import Conflict
from fairlead.process.extra import install_command
from fairlead.process.vectors import vector_files
from fairlead.store.operator_settings import OperatorSettings


def check_vectors(sent: OperatorSettings) -> None:
    """`Conflict` for a change that turns the vector tier on while nothing makes vectors."""
    turned_on = "vector_cache_enabled" in sent.model_fields_set and sent.vector_cache_enabled
    if turned_on and vector_files() is None:
        raise Conflict(
            f"vectorCacheEnabled needs the word vectors: `{install_command('vectors')}`, and start fairlead again.",
            param="vectorCacheEnabled",
        )
