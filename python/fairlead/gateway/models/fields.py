"""The fields of a model that an operator may set."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StrictBool, StrictInt

from fairlead.gateway.fields import ModelId, Name, Text
from fairlead.gateway.nodes.fields import ApiType
from fairlead.gateway.providers.catalogue import Mode
from fairlead.gateway.providers.stated_facts import StatedFacts
from fairlead.wire import Wire

ProviderName = Annotated[
    Text,
    Field(
        min_length=1, max_length=200, description="A catalogue id, a node's id or a node's prefix."
    ),
]
Tokens = Annotated[StrictInt, Field(ge=1, le=100_000_000)]


class ModelSettings(StatedFacts):
    """Settings of any model. In a change, a field that is not sent stays and null clears it."""

    model_name: Name | None = Field(None, description="How lists call it.")
    is_hidden: StrictBool | None = Field(
        None, description="Left out of lists; it can still be called."
    )
    max_output_token_override: Tokens | None = Field(
        None, description="The maximum of output tokens, whatever a request says."
    )
    context_window_override: Tokens | None = Field(
        None, description="In place of what the provider or the catalogue says."
    )
    type: Mode | None = Field(
        None,
        description="The use of the model; replaces the type from its provider, the catalogue or its "
        "name. Lists show it, and `auto` chooses among models of the type `chat`. Without `supportedEndpoints` "
        "it also sets which calls the model accepts.",
    )
    api_type: ApiType | None = Field(
        None,
        description="The API by which the model is called at a provider of OpenAI's dialects: `chat` or `responses`. "
        "Another value says what the model is for, as a node's `apiType` does.",
    )


class ModelFields(ModelSettings):
    """A model and its overrides."""

    provider: ProviderName
    model_id: Annotated[ModelId, Field(max_length=240)]


class NewModel(ModelFields):
    """The body that registers a custom model, after asking its provider."""

    connection_id: Text | None = Field(
        None, description="The connection to test; by default the provider's most preferred one."
    )
    strict: StrictBool = Field(True, description="Refuse a model that the provider does not list.")


class Visibility(Wire):
    """The body that hides or shows models of a provider."""

    provider: ProviderName
    model_ids: Annotated[list[ModelId], Field(min_length=1, max_length=500)]
    is_hidden: StrictBool
