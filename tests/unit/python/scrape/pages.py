"""Pages of the kinds that the web has, with `[[` and `]]` around what belongs to the content."""
# ruff: noqa: E501, RUF001, ISC004 - pages are as wide as pages are, and in whatever script

from __future__ import annotations

NAV = """<header class="site-header"><a href="/">Logo</a><nav class="main-nav"><ul><li><a href="/news">News</a></li>
<li><a href="/sport">Sport</a></li><li><a href="/money">Money</a></li><li><a href="/weather">Weather</a></li></ul></nav>
</header>"""
FOOTER = """<footer><p>Copyright 2026 the publishers. All rights reserved.</p><ul><li><a href="/t">Terms</a></li>
<li><a href="/p">Privacy</a></li><li><a href="/c">Contact</a></li></ul></footer>"""
COOKIES = """<div id="cookie-banner" class="cookie consent"><p>We use cookies to improve your visit. By going on you
agree to our use of cookies and of similar techniques.</p><button>Accept</button></div>"""
RELATED = """<div class="related-articles"><h3>You may also like</h3><ul><li><a href="/1">Ten ways to boil an egg</a></li>
<li><a href="/2">The secret life of spoons</a></li><li><a href="/3">Why forks have tines</a></li>
<li><a href="/4">A short history of the plate</a></li></ul></div>"""
SHARE = '<div class="share-buttons"><a href="#">Tweet</a> <a href="#">Share</a> <a href="#">Mail</a></div>'

P = [
    "The town stands where two rivers meet, and for six centuries its people have lived from the ferry that crosses "
    "both of them in one long curve, a crossing which no bridge has ever managed to replace for good.",
    "Each bridge that was built has been carried away by the ice, the first of them in 1684, the last within the memory "
    "of people who still tell of the sound that it made when the middle span gave way before dawn.",
    "Engineers who came from the capital explained that the fault lay with the piers, which stood in gravel that moves, "
    "slowly but every year, toward the sea; nobody in the town had thought otherwise.",
    "The ferry itself is a flat barge on a rope. It takes eleven minutes, four cars or one hay wagon, and it stops when "
    "the wind comes from the north-west, as it does on about thirty days of the year.",
    "What it earns goes to the school. That was decided in a vote in 1921, and although the vote has been repeated six "
    "times since, the result has never been close.",
]


def paragraphs(*numbers: int) -> str:
    return "\n".join(f"<p>{P[n]}</p>" for n in numbers)


PAGES = {
    "article-in-main": f"""<html><head><title>The ferry</title></head><body>{COOKIES}{NAV}<main><article>
[[<h1>The ferry of two rivers</h1>{paragraphs(0, 1, 2)}<h2>The barge</h2>{paragraphs(3, 4)}]]{SHARE}</article></main>
<aside class="sidebar"><h3>Weather</h3><p>Rain, later more rain.</p></aside>{RELATED}{FOOTER}</body></html>""",
    "divs-with-names": f"""<html><body>{NAV}<div id="wrap"><div class="post-content">[[<h1>The ferry</h1>
{paragraphs(0, 1, 2, 3)}]]</div><div class="sidebar"><h4>Archive</h4><ul><li><a href="/2025">2025</a></li><li>
<a href="/2024">2024</a></li></ul></div></div>{FOOTER}</body></html>""",
    "divs-without-names": f"""<html><body><div><div><a href="/a">One</a> <a href="/b">Two</a> <a href="/c">Three</a>
<a href="/d">Four</a></div><div>[[{paragraphs(0, 1, 2, 3, 4)}]]</div><div><a href="/x">Imprint</a></div></div></body></html>""",
    "table-layout": f"""<html><body><table width="100%"><tr><td class="menu"><a href="/1">Home</a><br><a href="/2">Guest book</a>
<br><a href="/3">Links</a></td><td>[[{paragraphs(1, 2, 3)}]]</td></tr></table></body></html>""",
    "with-list-and-table": f"""<html><body>{NAV}<article>[[<h1>Fares</h1>{paragraphs(3)}<ul><li>Walkers go free of charge</li>
<li>Bicycles pay one crown</li><li>Cars pay nine crowns</li></ul><table><tr><th>Day</th><th>Crossings</th></tr><tr><td>Monday</td>
<td>24</td></tr><tr><td>Sunday</td><td>12</td></tr></table>{paragraphs(4)}]]</article>{FOOTER}</body></html>""",
    "documentation": f"""<html><body><div class="sidebar nav"><ul><li><a href="/i">Install</a></li><li><a href="/u">Use</a></li>
<li><a href="/f">FAQ</a></li><li><a href="/api">API</a></li></ul></div><div role="main" class="document">[[<h1>Install</h1>
<p>Install the package from the index with the tool of your choice, then call the program once so that it writes its
configuration into your home directory, where you may change it with any editor.</p><pre><code>pip install ferry
ferry --version</code></pre><p>If the second line prints a number, the installation has worked and you may go on to the
next chapter, which explains the three kinds of crossing and what each of them costs.</p>]]</div>{FOOTER}</body></html>""",
    "blog-with-comments": f"""<html><body>{NAV}<div class="entry">[[<h1>A crossing</h1>{paragraphs(0, 3, 4)}]]</div>
<div id="comments" class="comments"><h3>3 comments</h3><div class="comment"><p>Great text, I was there in 1999!</p></div>
<div class="comment"><p>I was there too and it rained all week, what a pity.</p></div></div>{RELATED}{FOOTER}</body></html>""",
    "news-with-figure": f"""<html><body>{NAV}<div class="breadcrumb"><a href="/">Home</a> &gt; <a href="/n">News</a></div>
<article class="story">[[<h1>Ice takes the bridge</h1>{paragraphs(1)}<figure><img src="/b.jpg" alt=""><figcaption>The bridge
on the morning after.</figcaption></figure>{paragraphs(2)}<blockquote><p>We heard it go, and then we heard nothing at all,
which was worse than the noise had been.</p></blockquote>{paragraphs(4)}]]<div class="newsletter"><p>Get our newsletter every
morning.</p></div></article>{RELATED}{FOOTER}</body></html>""",
    "two-part-article": f"""<html><body>{NAV}<div class="content"><section>[[<h2>Before</h2>{paragraphs(0, 1)}]]</section><div
class="ad-box advertisement"><p>Buy a boat today.</p></div><section>[[<h2>After</h2>{paragraphs(2, 3)}]]</section></div>
{FOOTER}</body></html>""",
    "short-notice": f"""<html><body>{NAV}<main>[[<h1>Closed</h1><p>The ferry does not run today because of the wind.</p>]]
</main>{FOOTER}</body></html>""",
    "other-script": f"""<html lang="ru"><body>{NAV}<article>[[<h1>Паром</h1><p>Город стоит там, где встречаются две реки, и шесть
столетий его жители живут переправой, которую ни один мост так и не смог заменить надолго.</p><p>Каждый построенный мост
уносил лёд: первый в 1684 году, последний на памяти людей, которые ещё рассказывают, с каким звуком он рухнул.</p>]]
</article>{FOOTER}</body></html>""",
    "inline-scripts": f"""<html><body>{NAV}<div class="article-body">[[{paragraphs(0)}]]<script>var tracking = "on";</script>
<style>p {{ color: red }}</style>[[{paragraphs(2, 4)}]]<noscript>Turn on scripts.</noscript></div>{FOOTER}</body></html>""",
}
