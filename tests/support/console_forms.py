"""Forms of the console as their HTML has them: what a browser would send, and what a page says is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from typing import Final

Attributes = dict[str, str | None]

# Far beyond every bound.
VAST: Final = "9" * 24


@dataclass(slots=True)
class Control:
    """A field that a person fills; `text` is what it has, None for a box that is not checked."""

    name: str
    kind: str
    attributes: Attributes
    text: str | None = ""
    options: list[str] = field(default_factory=list)

    @property
    def is_required(self) -> bool:
        return "required" in self.attributes

    @property
    def is_kept(self) -> bool:
        """Whether what was typed is shown again: a secret never is, nor a choice that there is not."""
        return self.kind not in ("password", "select")

    @property
    def error_id(self) -> str:
        return f"{self.attributes.get('id')}-error"

    def is_marked(self) -> bool:
        """Whether it is said to be wrong, for eyes and for a screen reader."""
        about = (self.attributes.get("aria-describedby") or "").split()
        return self.attributes.get("aria-invalid") == "true" and self.error_id in about

    def wrong_values(self) -> Iterator[tuple[str, str]]:
        """What must not be taken, each with its kind: nothing where something is needed, another type, too much."""
        if self.is_required:
            yield "empty", ""
        if (mode := self.attributes.get("inputmode")) in ("numeric", "decimal"):
            yield from (
                (f"{mode} word", "seven"),
                (f"{mode} vast", VAST),
                (f"{mode} low", f"-{VAST}"),
            )
            if mode == "decimal":
                yield from (("nan", "nan"), ("infinite", "1e999"))
        elif self.kind == "datetime-local":
            yield "moment", "yesterday"
        elif self.kind == "email":
            yield "address", "nobody"
        elif self.kind == "select":
            yield "choice", "no-such-choice"
        elif most := self.attributes.get("maxlength"):
            yield "long", "w" * (int(most) + 1)


@dataclass(slots=True)
class PageForm:
    """A form that is posted; each button that names an act makes one of its own."""

    action: str
    act: str = ""
    is_usable: bool = True
    """Whether it is seen, and a button of it can be pressed."""
    hidden: dict[str, str] = field(default_factory=dict)
    controls: list[Control] = field(default_factory=list)

    def fields(self) -> dict[str, str]:
        """What a browser sends of it."""
        typed = {each.name: each.text for each in self.controls if each.text is not None}
        return {**self.hidden, **typed, "act": self.act}


class ConsolePage(HTMLParser):
    """The forms of a page, and the words of its errors by their ids."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.forms: list[PageForm] = []
        self.errors: dict[str, str] = {}
        self.alerts: list[str] = []
        self.headings: list[str] = []
        self._form: PageForm | None = None
        self._acts: list[str] = []
        self._control: Control | None = None
        self._words: list[str] | None = None
        self.feed(text)

    def form(self, act: str) -> PageForm | None:
        return next((each for each in self.forms if each.act == act), None)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form" and (given.get("method") or "").lower() == "post":
            self._form, self._acts = PageForm(given.get("action") or "", is_usable=False), []
            self._is_seen = "hidden" not in given
        if tag in ("h1", "p"):
            self._words = []
            if tag == "p" and given.get("role") == "alert":
                self._into = ("alert", "")
            elif tag == "p" and "error" in (given.get("class") or "").split():
                self._into = ("error", given.get("id") or "")
            else:
                self._into = (tag, "")
        if self._form is not None:
            self._in_form(tag, given, self._form)

    def _in_form(self, tag: str, given: Attributes, form: PageForm) -> None:
        name, value = given.get("name") or "", given.get("value") or ""
        if tag == "button":
            form.is_usable |= self._is_seen and "disabled" not in given
            if name == "act":
                self._acts.append(value)
        elif tag == "option" and self._control is not None:
            is_first = not self._control.options
            self._control.options.append(value)
            if is_first or "selected" in given:
                self._control.text = value
        elif tag == "input" and given.get("type") == "hidden":
            if name == "act":
                form.act = value
            else:
                form.hidden[name] = value
        elif tag in ("input", "select", "textarea") and name:
            kind = given.get("type") or "text" if tag == "input" else tag
            control = Control(name, kind, given, value)
            if kind == "checkbox" and "checked" not in given:
                control.text = None
            form.controls.append(control)
            self._control = control if tag != "input" else None

    def handle_data(self, data: str) -> None:
        if self._control is not None and self._control.kind == "textarea":
            self._control.text = f"{self._control.text}{data}"
        elif self._words is not None:
            self._words.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form" and self._form is not None:
            form, self._form = self._form, None
            for act in self._acts or [form.act]:
                self.forms.append(replace(form, act=act))
        if tag in ("select", "textarea") and self._control is not None:
            # A browser takes the line break off with which a text begins.
            self._control.text = (self._control.text or "").removeprefix("\n")
            self._control = None
        if tag in ("h1", "p") and self._words is not None:
            said, self._words = "".join(self._words).strip(), None
            kind, name = self._into
            if kind == "alert" and said:
                self.alerts.append(said)
            elif kind == "error":
                self.errors[name] = said
            elif kind == "h1":
                self.headings.append(said)
