"""Running text for pages: grammatical sentences of many lengths, in several languages, the same for the same dice.

Each language has sentence patterns whose slots are filled from lists. The number of different sentences is large
enough that a run of four words seldom occurs twice in a page by accident.
"""
# ruff: noqa: E501, RUF001 - texts are in whatever script

from __future__ import annotations

import random
import re
from typing import Final

_SLOT: Final = re.compile(r"<(\w+)>")


def _list(text: str) -> list[str]:
    return [each.strip() for each in text.strip().split("/")]


_ENGLISH: Final = {
    "patterns": _list(
        "<who> <did> <what> <when>, <but>./<When>, <who> <did> <what>./<who> <did> <what>./"
        "<who> <did> <what> because <who2> <did> <what2> <when>./"
        "“<who> <did> <what>,” said <person>, “and <but>.”/<When> <who> <did> <what>, although <who2> <did> <what2>; <but>./"
        "It was <when> that <who> <did> <what>./According to <person>, <who> <did> <what>, and <who2> <did> <what2> <when>./"
        "<but>, which is why <who> <did> <what> <when>./What <who> <did> <when> was <adj> enough, yet <but>./"
        "<person> recalled how <who> <did> <what> and how <adj> that seemed <when>./Nothing about it was <adj>./"
        "By then <number> people had heard that <who> <did> <what>./Was it <adj>? <person> thinks so, and <but>./"
        "Of the <number> visitors who came <when>, few noticed that <who> <did> <what>./The answer is <adj>."
    ),
    "who": _list(
        "the harbour board/a small team of surveyors/the night train's crew/her grandfather/the city's oldest bakery/"
        "the company that owns the mill/a retired teacher/the orchestra/one of the two brothers/the regional hospital/"
        "the committee/a group of volunteers/the new mayor/every second household/the museum's curator/the goalkeeper/"
        "the software that runs the locks/an engineer from the valley/the publisher/the party's younger members/"
        "the bank/our neighbours/the research station/a farmer on the eastern shore/the minister's office/the court/"
        "the first edition of the map/the fishing fleet/a letter from the archive/the second engine/the choir"
    ),
    "did": _list(
        "rebuilt/sold/described in some detail/refused to accept/lost sight of/had quietly paid for/measured/photographed/"
        "promised to repair/never mentioned/argued over/found/gave up/took apart and cleaned/inherited/voted for/"
        "wanted to replace/learned to live with/borrowed money for/compared notes on/carried home/ignored/studied/"
        "published/painted over/waited for/kept a careful record of/opened the doors to/warned about/depended on"
    ),
    "what": _list(
        "the wooden bridge below the weir/a plan that nobody had read/the larger of the two boats/the winter timetable/"
        "a box of unsigned drawings/the accounts of the last nine years/a recipe for rye bread/the noise from the quarry/"
        "most of the savings/the rules on parking near the school/an old promise/the results of the spring survey/"
        "the price of heating oil/a garden that faces north/the missing chapters/every lamp in the upper street/"
        "the long argument about water/a stone that marks the border/the only copy of the report/three weeks of rain/"
        "the small print of the contract/an offer from abroad/the instrument in the attic/the road across the pass/"
        "the vaccine trial/the signal box/a shelf of unopened letters/the island's last telephone exchange/the budget"
    ),
    "when": _list(
        "on a cold morning in March/before the ferry left/during the long strike/in the spring of 1987/after the second vote/"
        "while the shops were still closed/at the end of the season/within a few hours/twice in the same year/last Thursday/"
        "when the lights came back on/shortly before midnight/over the following decade/in the first week of the trial/"
        "as the river rose/for the better part of a year/between the wars/on the day of the fair/under some pressure"
    ),
    "but": _list(
        "nobody could say what it had cost/the figures tell another story/it rained for most of the week/few people objected/"
        "that was never written down/the matter was closed within the hour/there were good reasons to hesitate/"
        "the savings turned out to be modest/only one of them ever came back/it is too early to be certain/"
        "the neighbours remember it otherwise/hardly anything has changed since/the ice had other plans/"
        "some of the money is still missing/that depends on whom you ask/the weather decided the rest/the work goes on"
    ),
    "adj": _list(
        "surprising/simple/costly/unusual/fair/slow/awkward/familiar/generous/plain/risky/necessary/odd/clear"
    ),
    "person": _list(
        "the station master/a spokeswoman for the council/one of the drivers/the head of the institute/a former colleague/"
        "the captain/a woman who lives opposite/the lawyer for the family/the author/his trainer/the chief nurse"
    ),
    "number": _list(
        "forty/two hundred/nineteen/three thousand/sixty-one/a dozen/eight hundred/about ninety/1,400/350"
    ),
}

_GERMAN: Final = {
    "patterns": _list(
        "<who> <did> <what> <when>./<When> bemerkte niemand, dass <but>./<who> <did> <what>, aber <but>./"
        "Wie <person> berichtet, war <when> kaum etwas davon zu sehen; <but>./„Ich habe es <when> selbst gesehen“, sagt <person>./"
        "Das ist <adj>, denn <but>./Ob das <adj> ist, weiß <person> auch nicht."
    ),
    "who": _list(
        "der Stadtrat/die alte Bäckerei/ein Lehrer aus dem Nachbardorf/das Museum/die Fähre/der Verein/die Klinik/ihr Großvater/das Gericht/die zweite Mannschaft"
    ),
    "did": _list(
        "verkaufte/vermaß/beschrieb/prüfte/verlor/erneuerte/bezahlte/fotografierte/verschwieg/übernahm"
    ),
    "what": _list(
        "die hölzerne Brücke am Wehr/den Plan für den Winter/eine Kiste mit Zeichnungen/das größere der beiden Boote/die Straße über den Pass/den Lärm aus dem Steinbruch/das Rezept für Roggenbrot/die Rechnung der letzten Jahre"
    ),
    "when": _list(
        "an einem kalten Morgen im März/kurz vor Mitternacht/nach der zweiten Abstimmung/während des langen Streiks/im Frühjahr 1987/am Ende der Saison/am vergangenen Donnerstag"
    ),
    "but": _list(
        "die Zahlen erzählen eine andere Geschichte/es regnete fast die ganze Woche/kaum jemand widersprach/das hat nie jemand aufgeschrieben/nur einer kam zurück/die Arbeit geht weiter"
    ),
    "person": _list(
        "der Hafenmeister/eine Sprecherin der Stadt/die Autorin/einer der Fahrer/der Leiter des Instituts"
    ),
    "adj": _list("überraschend/einfach/teuer/ungewöhnlich/gerecht/langsam"),
}

_FRENCH: Final = {
    "patterns": _list(
        "<who> <did> <what> <when>./<When>, <who> <did> <what>, mais <but>./Selon <person>, <but>, ce qui reste <adj>./"
        "« Nous l'avons vu <when> », explique <person>, et <but>./C'est <adj>./<who> <did> <what> parce que <but>."
    ),
    "who": _list(
        "le conseil municipal/la vieille boulangerie/un professeur à la retraite/le musée/l'équipe de nuit/le tribunal/une agricultrice de la vallée/son grand-père/l'orchestre/la banque"
    ),
    "did": _list(
        "a vendu/a mesuré/a décrit/a refusé/a perdu/a repris/a payé/a photographié/a oublié/a réparé"
    ),
    "what": _list(
        "le pont de bois sous le barrage/un plan que personne n'avait lu/le plus grand des deux bateaux/les horaires d'hiver/une caisse de dessins/la route du col/le bruit de la carrière/les comptes des neuf dernières années"
    ),
    "when": _list(
        "par un froid matin de mars/avant le départ du bac/pendant la longue grève/au printemps 1987/après le second vote/jeudi dernier/peu avant minuit"
    ),
    "but": _list(
        "les chiffres racontent une autre histoire/il a plu toute la semaine/personne ne s'y est opposé/rien n'a été écrit/un seul est revenu/le travail continue"
    ),
    "person": _list(
        "le capitaine du port/une porte-parole de la mairie/l'autrice/un ancien collègue/l'infirmière en chef"
    ),
    "adj": _list("surprenant/simple/coûteux/rare/juste/lent"),
}

_SPANISH: Final = {
    "patterns": _list(
        "<who> <did> <what> <when>./<When>, <who> <did> <what>, pero <but>./Según <person>, <but>./"
        "«Lo vimos <when>», dijo <person>, y <but>./Es algo <adj>./<who> <did> <what> porque <but>."
    ),
    "who": _list(
        "el ayuntamiento/la panadería más antigua/un maestro jubilado/el museo/el equipo de noche/el tribunal/una agricultora del valle/su abuelo/la orquesta/el banco"
    ),
    "did": _list("vendió/midió/describió/rechazó/perdió/recuperó/pagó/fotografió/olvidó/reparó"),
    "what": _list(
        "el puente de madera bajo la presa/un plan que nadie había leído/el mayor de los dos barcos/el horario de invierno/una caja de dibujos/la carretera del puerto/el ruido de la cantera/las cuentas de los últimos nueve años"
    ),
    "when": _list(
        "en una fría mañana de marzo/antes de salir el barco/durante la larga huelga/en la primavera de 1987/después de la segunda votación/el jueves pasado"
    ),
    "but": _list(
        "las cifras cuentan otra historia/llovió toda la semana/casi nadie se opuso/nada quedó por escrito/solo uno regresó/el trabajo continúa"
    ),
    "person": _list(
        "el capitán del puerto/una portavoz municipal/la autora/un antiguo colega/la jefa de enfermería"
    ),
    "adj": _list("sorprendente/sencillo/costoso/extraño/justo/lento"),
}

_RUSSIAN: Final = {
    "patterns": _list(
        "<who> <did> <what> <when>./<When> <who> <did> <what>, но <but>./По словам <person>, <but>./"
        "«Мы видели это <when>», — рассказал собеседник редакции, и <but>./Это довольно <adj>./<who> <did> <what>, потому что <but>."
    ),
    "who": _list(
        "городской совет/старый пекарь/учитель из соседнего села/областной музей/ночной экипаж/районный суд/фермер с восточного берега/его дед/камерный оркестр/местный банк"
    ),
    "did": _list(
        "продал/измерил/подробно описал/отверг/потерял/восстановил/оплатил/сфотографировал/забыл/починил"
    ),
    "what": _list(
        "деревянный мост у плотины/план, которого никто не читал/большую из двух лодок/зимнее расписание/ящик с рисунками/дорогу через перевал/счета за девять лет/рецепт ржаного хлеба"
    ),
    "when": _list(
        "холодным мартовским утром/перед отходом парома/во время долгой забастовки/весной 1987 года/после второго голосования/в прошлый четверг/незадолго до полуночи"
    ),
    "but": _list(
        "цифры говорят о другом/всю неделю шёл дождь/почти никто не возражал/об этом нигде не написано/вернулся только один/работа продолжается"
    ),
    "person": _list(
        "капитана порта/представителя мэрии/автора книги/бывшего коллеги/главной медсестры"
    ),
    "adj": _list("странно/просто/дорого/необычно/справедливо/медленно"),
}

_CHINESE: Final = {
    "patterns": _list(
        "<when>，<who><did><what>。/<who><did><what>，但是<but>。/<person>表示，<but>，所以<who><did><what>。/“我们<when>亲眼看到了”，<person>说，“<but>。”"
    ),
    "who": _list(
        "市议会/老面包店/一位退休教师/博物馆/夜班船员/地方法院/东岸的农民/她的祖父/交响乐团/当地银行"
    ),
    "did": _list("出售了/测量了/详细描述了/拒绝了/失去了/修复了/支付了/拍摄了/忘记了/研究了"),
    "what": _list(
        "水坝下面的木桥/没有人读过的计划/两条船中较大的一条/冬季时刻表/一箱图纸/翻山的公路/九年来的账目/黑麦面包的配方"
    ),
    "when": _list(
        "三月一个寒冷的早晨/渡船离开之前/漫长的罢工期间/一九八七年春天/第二次投票之后/上周四/午夜之前不久"
    ),
    "but": _list(
        "数字说明了另一个故事/整个星期都在下雨/几乎没有人反对/这件事从未写下来/只有一个人回来了/工作仍在继续"
    ),
    "person": _list("港务局长/市政府发言人/作者/一位前同事/护士长"),
}

_JAPANESE: Final = {
    "patterns": _list(
        "<when>、<who>は<what>を<did>。/<who>は<what>を<did>が、<but>。/<person>によると、<but>という。/「<when>に見ました」と<person>は話し、<but>と付け加えた。"
    ),
    "who": _list(
        "市議会/古いパン屋/退職した教師/博物館/夜勤の乗組員/地方裁判所/東岸の農家/彼女の祖父/交響楽団/地元の銀行"
    ),
    "did": _list(
        "売却した/測量した/詳しく説明した/断った/失った/修復した/支払った/撮影した/忘れていた/調べた"
    ),
    "what": _list(
        "堰の下の木の橋/誰も読んでいない計画/二隻のうち大きい方の船/冬の時刻表/図面の入った箱/峠を越える道/九年分の帳簿/ライ麦パンの作り方"
    ),
    "when": _list(
        "三月の寒い朝/船が出る前/長いストライキの間/一九八七年の春/二回目の投票の後/先週の木曜日/真夜中の少し前"
    ),
    "but": _list(
        "数字は別の話を語っている/一週間ずっと雨だった/ほとんど誰も反対しなかった/記録は残っていない/戻ってきたのは一人だけだった/作業は続いている"
    ),
    "person": _list("港長/市の広報担当者/著者/元同僚/看護師長"),
}

_ARABIC: Final = {
    "patterns": _list(
        "<did> <who> <what> <when>./<When> <did> <who> <what>، لكن <but>./وقال <person> إن <but>./وبحسب <person> فقد <did> <who> <what> لأن <but>."
    ),
    "who": _list(
        "مجلس المدينة/المخبز القديم/معلم متقاعد/المتحف/طاقم الليل/القاضي المحلي/مزارع من الضفة الشرقية/الجد/البنك المحلي"
    ),
    "did": _list("باع/قاس/وصف/رفض/فقد/أصلح/دفع ثمن/صور/نسي/درس"),
    "what": _list(
        "الجسر الخشبي أسفل السد/خطة لم يقرأها أحد/القارب الأكبر/جدول الشتاء/صندوق الرسوم/الطريق عبر الجبل/حسابات السنوات التسع الأخيرة"
    ),
    "when": _list(
        "في صباح بارد من مارس/قبل رحيل العبارة/خلال الإضراب الطويل/في ربيع عام 1987/بعد التصويت الثاني/يوم الخميس الماضي"
    ),
    "but": _list(
        "الأرقام تروي قصة أخرى/المطر لم يتوقف طوال الأسبوع/أحدا لم يعترض تقريبا/ذلك لم يكتب قط/واحدا فقط عاد/العمل مستمر"
    ),
    "person": _list("مدير الميناء/المتحدثة باسم البلدية/المؤلف/زميل سابق/رئيسة التمريض"),
}

LANGUAGES: Final = {
    "en": _ENGLISH,
    "de": _GERMAN,
    "fr": _FRENCH,
    "es": _SPANISH,
    "ru": _RUSSIAN,
    "zh": _CHINESE,
    "ja": _JAPANESE,
    "ar": _ARABIC,
}
WITHOUT_BLANKS: Final = frozenset(["zh", "ja"])


class Prose:
    """Text in one language. All methods draw from the dice that it was made with."""

    def __init__(self, language: str, dice: random.Random) -> None:
        self.language = language
        self.dice = dice
        self._lists = LANGUAGES[language]
        self._gap = "" if language in WITHOUT_BLANKS else " "

    def sentence(self) -> str:
        def fill(match: re.Match[str]) -> str:
            name = match[1].rstrip("2")
            chosen = self.dice.choice(self._lists[name.lower()])
            return chosen[:1].upper() + chosen[1:] if name[0].isupper() else chosen

        text = _SLOT.sub(fill, self.dice.choice(self._lists["patterns"]))
        return text[:1].upper() + text[1:]

    def sentences(self, count: int) -> str:
        return self._gap.join(self.sentence() for _ in range(count))

    def paragraph(self) -> str:
        """One to six sentences: news has short paragraphs, essays have long ones."""
        return self.sentences(self.dice.choice([1, 1, 2, 2, 2, 3, 3, 4, 5, 6]))

    def headline(self) -> str:
        """Some words without a full stop."""
        words = self.dice.choice(self._lists["what"]), self.dice.choice(self._lists["when"])
        text = self._gap.join(words) if self.dice.random() < 0.6 else words[0]
        return text[:1].upper() + text[1:]

    def words(self, count: int) -> str:
        found: list[str] = []
        while len(found) < count:
            found += self.headline().split()
        return " ".join(found[:count])
