//! Short texts inside articles that are not part of them, by their beginnings and subjects, in the most common
//! languages.

/// Longer texts are not checked.
pub(crate) const PHRASE_MAX: usize = 420;

/// The beginnings of labels, which describe what follows or nothing.
const STARTS: &[&str] = &[
    "advertisement",
    "- advertisement",
    "story continues",
    "article continues",
    "read more",
    "also read",
    "read also",
    "more:",
    "related:",
    "related article",
    "related story",
    "see also:",
    "recommended:",
    "don't miss",
    "you may also like",
    "share this",
    "follow us",
    "sign up for",
    "subscribe to",
    "subscribe now",
    "click here to",
    "continue reading",
    "get the latest",
    "download our app",
    "photo:",
    "image:",
    "filed under",
    "posted in",
    "tagged with",
    "tags:",
    "labels:",
    "leave a comment",
    "anzeige",
    "lesen sie auch",
    "lesen sie mehr",
    "mehr zum thema",
    "zum thema:",
    "auch interessant",
    "lire aussi",
    "à lire aussi",
    "lire la suite",
    "publicité",
    "lea también",
    "lee también",
    "le puede interesar",
    "publicidad",
    "leia também",
    "leia mais",
    "leggi anche",
    "pubblicità",
    "lees ook",
    "czytaj także",
    "читайте также",
    "читайте еще",
    "материалы по теме",
    "фото:",
    "اقرأ أيضا",
    "اقرأ المزيد",
    "关键字",
    "責任編輯",
    "责任编辑",
    "関連記事",
    "関連ニュース",
    "相关阅读",
    "相关新闻",
]; // rows of words

/// Legal notices, anywhere in a short text.
const NOTICES: &[&str] = &[
    "all rights reserved",
    "copyright ©",
    "© copyright",
    "© 20",
    "copyright 20",
    "(c) 20",
    "alle rechte vorbehalten",
    "tous droits réservés",
    "todos los derechos reservados",
    "все права защищены",
    "版权所有",
]; // rows of words

/// The subjects of offers, legal notices and forms.
const SUBJECTS: &[&str] = &[
    "newsletter",
    "your inbox",
    "subscribe",
    "sign up",
    "unlimited access",
    "privacy policy",
    "terms of use",
    "terms of service",
    "terms and conditions",
    "cookies",
    "your email",
    "email address",
    "all rights reserved",
    "affiliate link",
    "follow us",
    "advertis",
    "delivered straight",
    "unsubscribe",
    "log in to",
    "support my work",
    "newsletter abonnieren",
    "datenschutz",
    "s'abonner",
    "abonnez-vous",
    "suscríbete",
    "подпишитесь",
    "подписывайтесь",
    "assine",
    "abonnieren",
]; // rows of words

/// The headings of lists of other pages.
const RELATED: &[&str] = &[
    "related articles",
    "related posts",
    "related stories",
    "related content",
    "related news",
    "related reading",
    "related pages",
    "related products",
    "related questions",
    "recommended",
    "more from",
    "more stories",
    "more articles",
    "more posts",
    "more in ",
    "more news",
    "more recipes",
    "you may also",
    "you might also",
    "people also",
    "customers also",
    "read next",
    "what to read next",
    "most popular",
    "most read",
    "popular posts",
    "popular articles",
    "recent posts",
    "latest posts",
    "latest articles",
    "trending",
    "similar ",
    "keep reading",
    "ähnliche artikel",
    "ähnliche beiträge",
    "verwandte artikel",
    "mehr zum thema",
    "das könnte sie auch",
    "auch interessant",
    "lire aussi",
    "à lire aussi",
    "articles similaires",
    "articles liés",
    "sur le même sujet",
    "artículos relacionados",
    "noticias relacionadas",
    "te puede interesar",
    "artigos relacionados",
    "notícias relacionadas",
    "leia também",
    "articoli correlati",
    "leggi anche",
    "lees ook",
    "gerelateerd",
    "похожие",
    "читайте также",
    "материалы по теме",
    "по теме",
    "مطالب مرتبط",
    "اخبار مرتبط",
    "بیشتر بخوانید",
    "مقالات ذات صلة",
    "اقرأ أيضا",
    "مواضيع ذات صلة",
    "संबंधित",
    "यह भी पढ़ें",
    "ข่าวที่เกี่ยวข้อง",
    "บทความที่เกี่ยวข้อง",
    "関連記事",
    "関連ニュース",
    "おすすめ記事",
    "あわせて読みたい",
    "相关文章",
    "相关新闻",
    "相关阅读",
    "推荐阅读",
    "相關文章",
    "相關新聞",
    "관련 기사",
    "관련기사",
    "כתבות נוספות",
    "כתבות קשורות",
    "מאמרים קשורים",
    "ilgili haberler",
    "bài viết liên quan",
]; // rows of words

/// Words that notices of cookies have besides "cookie", in the most common languages.
const CONSENT: &[&str] = &[
    "accept",
    "agree",
    "allow",
    "consent",
    "privacy",
    "policy",
    "we use",
    "this site",
    "website",
    "experience",
    "settings",
    "zustimm",
    "akzeptier",
    "einverstanden",
    "verwende",
    "datenschutz",
    "utilise",
    "accepter",
    "utiliza",
    "aceptar",
    "aceitar",
    "utilizza",
    "accetta",
    "gebruik",
    "accepteren",
    "samtyck",
    "använder",
    "souhlas",
    "zgod",
    "çerez",
    "использ",
    "ใช้",
    "使用",
    "利用",
    "사용",
    "उपयोग",
]; // rows of words

/// The word "cookie" in other scripts.
const COOKIES: &[&str] = &[
    "cookie",
    "クッキー",
    "कुकी",
    "คุกกี้",
    "کوکی",
    "ملفات تعريف الارتباط",
    "ملفات الارتباط",
    "עוגיות",
    "쿠키",
    "куки",
    "çerez",
]; // rows of words

/// Whether a heading announces a list of other pages.
pub(crate) fn announces_related(line: &str) -> bool {
    let lower = line.to_lowercase();
    RELATED.iter().any(|start| lower.starts_with(start))
}

/// Whether a short text asks for consent to cookies.
pub(crate) fn asks_consent(line: &str) -> bool {
    let lower = line.to_lowercase();
    let is_other_script = |word: &&str| !word.is_ascii() && lower.contains(*word);
    COOKIES.iter().any(is_other_script) || lower.contains(COOKIES[0]) && CONSENT.iter().any(|word| lower.contains(word))
}

/// Whether a short text is a legal notice.
pub(crate) fn is_notice(line: &str) -> bool {
    let lower = line.to_lowercase();
    NOTICES.iter().any(|notice| lower.contains(notice)) || lower.trim_start().starts_with(['©', 'Ⓒ'])
}

/// Whether a short text is boilerplate. `is_linked` means that links make up much of it.
pub(crate) fn is_boilerplate(line: &str, is_linked: bool) -> bool {
    let lower = line.trim_start_matches(['[', '(', '>', '»', '►', '*', ' ']).to_lowercase();
    let begins = STARTS.iter().any(|start| lower.starts_with(start));
    if begins && (is_linked || lower.len() <= 60) {
        return true;
    }
    if NOTICES.iter().any(|notice| lower.contains(notice)) {
        return true;
    }
    let subjects = SUBJECTS.iter().filter(|subject| lower.contains(*subject)).count();
    subjects >= 2 || subjects == 1 && (is_linked || begins)
}
