"""A request that the stand-in refuses."""


class InvalidRequest(ValueError):
    """A request that the provider would answer with 400.

    `param` names the field and `code` the reason, as OpenAI's errors do.
    """

    def __init__(self, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.code = code
