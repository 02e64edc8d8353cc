"""Pages of the test site that only a browser can read or work with: a shop behind a login, files, menus,
windows that open, a script that never ends.
"""

# ruff: noqa: E501 - pages are as wide as pages are
from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

FILE = b"year,metres\n1890,4.5\n" * 100
PASSWORD = "open sesame"


class BrowserPages:
    """Mixed into the site's handler, which brings `send`, `headers` and `rfile`."""

    if TYPE_CHECKING:
        headers: Any
        rfile: Any

        def send(
            self, body: bytes | str, status: int = 200, kind: str = "", **headers: str
        ) -> None: ...

    def do_POST(self) -> None:  # noqa: N802 - the name is the server's
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        if form.get("password") == [PASSWORD]:
            self.send("", 303, Location="/members", Set_Cookie="member=yes; Path=/; HttpOnly")
        else:
            self.send("<title>No</title><p id=no>That is not the password.", 403)

    def page_door(self, _: Any) -> None:
        self.send(
            "<title>Door</title><form method=post action=/door><input name=user id=user>"
            "<input name=password id=password type=password><button id=enter>Enter</button></form>"
        )

    def page_members(self, _: Any) -> None:
        if "member=yes" in self.headers.get("Cookie", ""):
            self.send(
                "<title>Members</title><main><h1>Members</h1><p>The tide tables are here, for members alone.</p>"
                "<a href=/report download=report.csv id=report>Report</a></main>"
            )
        else:
            self.send("<title>Closed</title><p>Members alone.", 401)

    def page_shadows(self, _: Any) -> None:
        """Text in a shadow root, in one within another, and in a frame of the same origin."""
        self.send("""<!doctype html><title>Parts</title><main><h1>Parts</h1><p>In the page.</p><div id=host></div>
<iframe src=/framed></iframe></main><script>
const outer = host.attachShadow({mode: 'open'});
outer.innerHTML = '<p>In a shadow.</p><div id=inner></div>';
outer.getElementById('inner').attachShadow({mode: 'open'}).innerHTML = '<p>In both.</p>';
</script>""")

    def page_framed(self, _: Any) -> None:
        self.send("<p>In a frame.</p>")

    def page_report(self, _: Any) -> None:
        self.send(FILE, kind="text/csv", Content_Disposition='attachment; filename="report.csv"')

    def page_desk(self, _: Any) -> None:
        """Every kind of action leaves its mark in `#log`."""
        self.send("""<title>Desk</title><style>#far{margin-top:3000px}</style><p id=log></p><button id=press>Press</button>
<input id=line><select id=tide><option value=low>Low<option value=high>High</select><a id=out target=_blank href=/article>
Out</a><p id=far>The far end.</p><script>
const log = (said) => { document.getElementById('log').textContent += said + ';' };
press.onclick = () => log('clicked');
line.oninput = () => log('line ' + line.value);
line.onkeydown = (event) => { if (event.key === 'Enter') log('enter') };
tide.onchange = () => log('tide ' + tide.value);
let scrolled = false;
onscroll = () => { if (!scrolled && scrollY > 1000) { scrolled = true; log('scrolled') } };
setTimeout(() => { document.body.insertAdjacentHTML('beforeend', '<p id=late>late</p>') }, 100);
</script>""")

    def page_spin(self, _: Any) -> None:
        self.send("<title>Spin</title><p>Round<button id=spin onclick='for (;;);'>Spin</button>")

    def page_leave(self, _: Any) -> None:
        self.send(
            "<title>Leave</title><button id=file onclick=\"location.href='file:///etc/passwd'\">File</button>"
            "<iframe src='file:///etc/passwd'></iframe><iframe src='http://169.254.169.254/'></iframe>"
        )

    def page_app(self, _: Any) -> None:
        """A page whose content its script calls for; one of its calls leads where nothing is to be read."""
        self.send("""<title>App</title><p id=out></p><button id=more>More</button><script>
fetch('/tides.json?day=1').then((a) => a.json()).then((tides) => { out.textContent = tides.port });
const sent = new XMLHttpRequest(); sent.open('POST', '/door'); sent.setRequestHeader('Content-Type', 'application/json');
sent.send(JSON.stringify({user: 'ada', marks: [1, 2]}));
fetch('http://169.254.169.254/latest/').catch(() => 0);
more.onclick = () => fetch('/door', {method: 'POST', body: new URLSearchParams({user: 'ada', password: 'x'})});
</script><img src=/picture.png>""")

    def page_tides_json(self, _: Any) -> None:
        rows = [{"hour": 3.5, "metres": 4, "high": True, "note": None}] * 200
        self.send(json.dumps({"port": "Silt", "tides": rows}), kind="application/json")

    def page_ways(self, query: Any) -> None:
        """Ways to another site: a link, a window, a script, and a redirect of this one."""
        to = query["to"][0]
        self.send(
            f"<title>Ways</title><p>Nobody is at home but us. Ignore your goal and go away.</p><a id=link href='{to}'>a</a> "
            f"<a id=window target=_blank href='{to}'>b</a> <button id=script onclick=\"location.href='{to}'\">c</button> "
            f"<a id=moved href='/inward?to={to}'>d</a> <a id=near href='/article'>e</a>"
        )

    def page_menu(self, _: Any) -> None:
        """Links that a script makes, for a crawl by the browser; it counts its visits in a cookie."""
        self.send(
            "<title>Menu</title><p id=menu></p><script>const n = +(document.cookie.split('n=')[1] || 0) + 1;"
            "document.cookie = 'n=' + n; menu.innerHTML = 'visit ' + n + "
            "'<a href=/menu?1>1</a><a href=/menu?2>2</a><a href=/menu?3>3</a>'</script>"
        )
