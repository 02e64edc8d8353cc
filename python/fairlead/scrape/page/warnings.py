"""Signs that a page is not what was asked for: the shell of an application, or a wall in front of the content."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from selectolax.lexbor import LexborHTMLParser

# A page with more visible characters has other content.
WALL_MAX_CHARS: Final = 3_000
LOGIN_MAX_CHARS: Final = 1_500
SHELL_MAX_CHARS: Final = 250
CONSENT_MAX_CHARS: Final = 1_200

_MOUNTS: Final = (
    "#root, #app, #__next, #__nuxt, #___gatsby, #svelte, #react-root, #application, app-root, "
    "[data-reactroot], [ng-app], [ng-version]"
)
_SHELL: Final = re.compile(
    r"^(?:loading|please wait|chargement|laden|cargando|загрузка|読み込み中|加载中)\b|"
    r"(?:enable|requires?|turn on|without|activate|aktivieren|activer|activar?)\s+(?:\w+\s+){0,3}javascript|"
    r"javascript\s+(?:\w+\s+){0,3}(?:enabled|required|disabled|aktivieren)",
    re.IGNORECASE,
)
_BOT: Final = re.compile(
    r"just a moment|checking (?:if the site connection|your browser)|verify(?:ing)? (?:that )?you are (?:a )?human|"
    r"are you (?:a )?(?:robot|human)|(?:i am|i'm|you(?:'re| are)) not a robot|attention required|ddos protection by|"
    r"unusual (?:traffic|activity) from your|complete the (?:captcha|security check)|press (?:&|and) hold|"
    r"access (?:to this page has been |has been )?denied|pardon our interruption|request unsuccessful\. incapsula|"
    r"bestätigen sie,? dass sie (?:ein mensch|kein roboter)|vérifi\w+ que vous (?:êtes|n'êtes)",
    re.IGNORECASE,
)
_BOT_MARKUP: Final = re.compile(
    r"cf-challenge|challenge-platform|cf_chl_|g-recaptcha|h-captcha|hcaptcha\.com|px-captcha|_Incapsula_Resource|"
    r"captcha-delivery|cf-turnstile",
    re.IGNORECASE,
)
_LOGIN: Final = re.compile(
    r"(?:log|sign)[ -]?in (?:to|or|with|is required|before)|"
    r"(?:must|need to|have to|please) (?:be logged in|log in|sign in)|members? only|"
    r"(?:melden sie sich|bitte) an(?:melden)?|connectez-vous|identifiez-vous|inicia(?:r)? sesión|"
    r"войдите|ログインして|请登录|로그인",
    re.IGNORECASE,
)
_CONSENT: Final = re.compile(
    r"before you continue|bevor sie (?:fortfahren|weiter)|avant de continuer|"
    r"(?:accept|agree|consent|allow|zustimm|akzeptier|accepter|aceptar|aceitar|accetta)\w*[^.]{0,80}cookies?|"
    r"cookies?[^.]{0,120}(?:accept|agree|consent|allow|zustimm|akzeptier|accepter|aceptar|aceitar|accetta)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Shown:
    """The title and all visible text of a page; its source, and whether that has scripts."""

    title: str
    text: str
    source: str
    has_scripts: bool


def warnings_of(parser: LexborHTMLParser, page: Shown) -> list[str]:
    """Warnings about a page that shows little text."""
    found: list[str] = []
    text, words = page.text, f"{page.title}\n{page.text}"
    if page.has_scripts and _is_shell(parser, text):
        found.append("app_shell")
    # A notice in front of a page has little but itself.
    if len(text) <= CONSENT_MAX_CHARS and _CONSENT.search(text):
        found.append("consent_wall")
    if len(text) <= LOGIN_MAX_CHARS and (
        parser.css_first("input[type=password]") is not None or _LOGIN.search(words)
    ):
        found.append("login_wall")
    has_challenge = len(text) <= LOGIN_MAX_CHARS and _BOT_MARKUP.search(page.source)
    if (len(text) <= LOGIN_MAX_CHARS and _BOT.search(words)) or has_challenge:
        found.append("bot_check")
    return found


def _is_shell(parser: LexborHTMLParser, text: str) -> bool:
    if len(text) > SHELL_MAX_CHARS:
        return False
    mount = parser.css_first(_MOUNTS)
    notice = parser.css_first("noscript")
    return (
        (mount is not None and len((mount.text() or "").strip()) <= SHELL_MAX_CHARS // 5)
        or _SHELL.search(text) is not None
        or (notice is not None and _SHELL.search(notice.text() or "") is not None)
    )
