"""Submitted HTML forms of the gateway's own pages."""

from __future__ import annotations

from urllib.parse import parse_qsl

from fairlead.errors import InvalidRequest


def read_form(body: bytes, fields_max: int) -> dict[str, str]:
    """The fields of an `application/x-www-form-urlencoded` body; `InvalidRequest` if one occurs twice."""
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=fields_max
        )
    except ValueError:
        raise InvalidRequest("The form cannot be read: send it as the page does.") from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise InvalidRequest("The form has a field twice: send it as the page does.")
    return fields
