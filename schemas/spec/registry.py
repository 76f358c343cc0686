"""What the registry of deployments of differential privacy asks of a publisher, and nothing else in a spec says."""

from __future__ import annotations

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from schemas.spec.described import Title, without_silence
from schemas.spec.yaml import Strict


class RegistryFacts(Strict):
    """For the card that a release writes for the registry; said here, it stands on it."""

    curator_type: Title | None = Field(
        default=None, description="What kind of organisation publishes, in the registry's words: Government, Company, …"
    )
    region: Title | None = Field(default=None, description="Which region the data are about, or whose laws hold for them.")

    @model_serializer(mode="wrap")
    def _said(self, plain: SerializerFunctionWrapHandler) -> dict[str, str]:
        return without_silence(plain(self), "curator_type", "region")
