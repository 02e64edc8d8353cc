//! Questions in languages other than English. Courtesy phrases are removed, phrases for "how to" are unified, and
//! accents that people often omit are ignored. Everything else is compared word by word.

use super::split::Mark;
use super::Piece;

/// Phrases without meaning, anywhere in a question.
const SILENT: &[&str] = &[
    "por favor",
    "porfa",
    "porfavor",
    "pfv",
    "s'il vous plait",
    "s'il te plait",
    "svp",
    "stp",
    "bitte",
    "per favore",
    "per piacere",
    "alsjeblieft",
    "alstublieft",
    "aub",
    "tolong",
    "mohon",
    "proszę",
    "lütfen",
    "пожалуйста",
    "please",
    "pls",
];

/// Phrases without meaning at the beginning of a question.
const OPENINGS: &[&str] = &[
    "hola",
    "buenos dias",
    "buenas tardes",
    "buenas noches",
    "buenas",
    "disculpe",
    "disculpa",
    "ola",
    "olá",
    "oi",
    "bom dia",
    "boa tarde",
    "boa noite",
    "bonjour",
    "bonsoir",
    "salut",
    "hallo",
    "hi",
    "hello",
    "guten tag",
    "guten morgen",
    "guten abend",
    "moin",
    "ciao",
    "salve",
    "buongiorno",
    "buonasera",
    "hoi",
    "goedemorgen",
    "goedemiddag",
    "goedenavond",
    "halo",
    "selamat pagi",
    "selamat siang",
    "selamat sore",
    "selamat malam",
    "cześć",
    "dzień dobry",
    "merhaba",
    "selam",
    "привет",
    "здравствуйте",
    "hej",
    "puedes decirme",
    "me puedes decir",
    "podrias decirme",
    "me podrias decir",
    "puede decirme",
    "quiero saber",
    "quisiera saber",
    "me gustaria saber",
    "pode me dizer",
    "voce pode me dizer",
    "quero saber",
    "gostaria de saber",
    "pouvez-vous me dire",
    "peux-tu me dire",
    "je voudrais savoir",
    "j'aimerais savoir",
    "puoi dirmi",
    "mi puoi dire",
    "può dirmi",
    "vorrei sapere",
    "saya ingin tahu",
    "saya mau tahu",
    "saya mau tanya",
    "mau tanya",
    "kannst du mir sagen",
    "koennen sie mir sagen",
    "ich moechte wissen",
    "ich wuerde gerne wissen",
    "ich wuerde gern wissen",
];

/// Phrases without meaning at the end of a question.
const CLOSINGS: &[&str] = &[
    "gracias",
    "muchas gracias",
    "gracias de antemano",
    "obrigado",
    "obrigada",
    "muito obrigado",
    "merci",
    "merci d'avance",
    "merci beaucoup",
    "danke",
    "vielen dank",
    "danke im voraus",
    "danke schoen",
    "grazie",
    "grazie mille",
    "bedankt",
    "dank je",
    "dank je wel",
    "dank u",
    "terima kasih",
    "makasih",
    "dziękuję",
    "dzięki",
    "teşekkürler",
    "teşekkür ederim",
    "спасибо",
    "tack",
    "thanks",
    "thx",
];

/// Beginnings that ask how to do something, each with the form it is compared as. All beginnings of one form are
/// followed by an infinitive.
const HOW_TO: &[(&str, &str)] = &[
    ("como puedo", "como puedo"),
    ("como podria", "como puedo"),
    ("como se puede", "como puedo"),
    ("como hago para", "como puedo"),
    ("como hacer para", "como puedo"),
    ("de qué manera puedo", "como puedo"),
    ("de que manera puedo", "como puedo"),
    ("qué debo hacer para", "como puedo"),
    ("que debo hacer para", "como puedo"),
    ("qué tengo que hacer para", "como puedo"),
    ("que tengo que hacer para", "como puedo"),
    ("cual es la forma de", "como puedo"),
    ("como posso", "como posso"),
    ("como eu posso", "como posso"),
    ("como faço para", "como posso"),
    ("como eu faço para", "como posso"),
    ("como faco para", "como posso"),
    ("como eu faco para", "como posso"),
    ("como fazer para", "como posso"),
    ("o que devo fazer para", "como posso"),
    ("comment puis-je", "comment"),
    ("comment je peux", "comment"),
    ("comment est-ce que je peux", "comment"),
    ("comment pourrais-je", "comment"),
    ("comment faire pour", "comment"),
    ("que dois-je faire pour", "comment"),
    ("wie kann ich", "wie kann ich"),
    ("wie koennte ich", "wie kann ich"),
    ("wie kann man", "wie kann ich"),
    ("come posso", "come posso"),
    ("come potrei", "come posso"),
    ("come faccio a", "come posso"),
    ("come si fa a", "come posso"),
    ("in che modo posso", "come posso"),
    ("cosa devo fare per", "come posso"),
    ("hoe kan ik", "hoe kan ik"),
    ("hoe kan je", "hoe kan ik"),
    ("op welke manier kan ik", "hoe kan ik"),
    ("bagaimana cara", "bagaimana cara"),
    ("bagaimana caranya", "bagaimana cara"),
    ("gimana cara", "bagaimana cara"),
    ("gimana caranya", "bagaimana cara"),
    ("bagaimana saya bisa", "bagaimana cara"),
    ("bagaimana saya dapat", "bagaimana cara"),
];

pub(super) fn read(marks: Vec<Mark>) -> Vec<Piece> {
    // In languages with letters beyond those of Western Europe, a letter without its accent is a different letter.
    let is_western = |text: &str| text.chars().all(|c| c <= '\u{ff}');
    let folds = marks.iter().filter_map(Mark::word).all(is_western);
    let mut marks: Vec<Mark> = marks.into_iter().filter(|mark| *mark != Mark::Comma).collect();
    for mark in marks.iter_mut().filter(|_| folds) {
        if let Mark::Word { text, .. } = mark {
            *text = folded(text);
        }
    }
    let whole = marks.clone();
    without_courtesy(&mut marks);
    if marks.is_empty() {
        // A text that consists only of courtesy phrases is kept.
        marks = whole;
    }
    if let Some((phrase, form)) =
        HOW_TO.iter().filter(|(phrase, _)| is_at(&marks, 0, phrase)).max_by_key(|(phrase, _)| phrase.len())
    {
        let form = form.split(' ').map(|text| Mark::Word { text: text.to_owned(), is_name: false });
        marks.splice(..phrase.split(' ').count(), form);
    }
    marks.into_iter().filter_map(Mark::verbatim).collect()
}

fn without_courtesy(marks: &mut Vec<Mark>) {
    let mut at = 0;
    while at < marks.len() {
        match SILENT.iter().find(|phrase| is_at(marks, at, phrase)) {
            Some(phrase) => drop(marks.drain(at..at + phrase.split(' ').count())),
            None => at += 1,
        }
    }
    while let Some(phrase) = OPENINGS.iter().find(|phrase| is_at(marks, 0, phrase)) {
        marks.drain(..phrase.split(' ').count());
    }
    let ends = |marks: &[Mark], phrase: &str| {
        marks.len().checked_sub(phrase.split(' ').count()).filter(|start| is_at(marks, *start, phrase))
    };
    while let Some(start) = CLOSINGS.iter().find_map(|phrase| ends(marks, phrase)) {
        marks.truncate(start);
    }
}

/// Whether the phrase is at this position. Case is ignored.
fn is_at(marks: &[Mark], at: usize, phrase: &str) -> bool {
    phrase
        .split(' ')
        .zip(at..)
        .all(|(wanted, at)| matches!(marks.get(at), Some(Mark::Word { text, .. }) if text == wanted))
}

/// Removes the accents that people often omit when they type. Accents at the end stay, because they distinguish tenses
/// (`pago` and `pagó`).
fn folded(word: &str) -> String {
    let count = word.chars().count();
    let mut out = String::with_capacity(word.len() + 2);
    for (at, c) in word.chars().enumerate() {
        let is_last = at + 1 == count;
        match c {
            'ä' => out.push_str("ae"),
            'ö' => out.push_str("oe"),
            'ü' => out.push_str("ue"),
            'ß' => out.push_str("ss"),
            _ if is_last => out.push(c),
            'á' | 'à' | 'â' | 'ã' => out.push('a'),
            'é' | 'è' | 'ê' | 'ë' => out.push('e'),
            'í' | 'ì' | 'î' | 'ï' => out.push('i'),
            'ó' | 'ò' | 'ô' | 'õ' => out.push('o'),
            'ú' | 'ù' | 'û' => out.push('u'),
            _ => out.push(c),
        }
    }
    out
}
