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
