"""Proxy variables are named where they are not followed, without their login."""

from __future__ import annotations

from fairlead.net.proxy_variables import ignored_proxies, proxy_warning


def test_a_variable_is_shown_without_its_login() -> None:
    environment = {
        "HTTPS_PROXY": "http://user:secret@proxy.example:3128",
        "http_proxy": "proxy.example:3128",
        "ALL_PROXY": "",
        "NO_PROXY": "localhost",
    }
    proxies = ignored_proxies(environment)
    assert proxies == {
        "HTTPS_PROXY": "http://***@proxy.example:3128",
        "http_proxy": "http://proxy.example:3128",
    }
    assert proxy_warning(proxies) == (
        "HTTPS_PROXY (http://***@proxy.example:3128) and http_proxy (http://proxy.example:3128) "
        "are not used for calls of providers"
    )
    assert ignored_proxies({"NO_PROXY": "*"}) == {}
