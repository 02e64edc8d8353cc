//! The kinds of elements, by how they are processed.

/// An element's name, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    Text,
    A,
    Article,
    Aside,
    Blockquote,
    Body,
    Br,
    Caption,
    Code,
    /// A field or button of a form: no output, except the box of a task.
    Control,
    Dd,
    Del,
    Div,
    Dl,
    Em,
    /// A document or medium inside the page: output as a link.
    Embed,
    Figure,
    Footer,
    Form,
    H(u8),
    Header,
    Hr,
    Img,
    Li,
    Main,
    Math,
    Menu,
    Nav,
    Ol,
    P,
    Pre,
    Section,
    Span,
    Strong,
    Sub,
    Sup,
    Table,
    Td,
    Th,
    Tr,
    RowGroup,
    /// The TeX source of a formula.
    Tex,
    Ul,
    /// No output, and no content.
    Wbr,
    /// Another block element.
    OtherBlock,
    /// Another inline element.
    OtherInline,
    Other,
}

impl Tag {
    pub(crate) fn of(name: &str) -> Tag {
        match name {
            "a" => Tag::A,
            "article" => Tag::Article,
            "aside" => Tag::Aside,
            "blockquote" => Tag::Blockquote,
            "body" => Tag::Body,
            "br" => Tag::Br,
            "caption" => Tag::Caption,
            "code" | "kbd" | "samp" => Tag::Code,
            "dd" => Tag::Dd,
            "del" | "s" => Tag::Del,
            "div" => Tag::Div,
            "dl" => Tag::Dl,
            "em" | "i" => Tag::Em,
            "iframe" | "frame" | "embed" | "object" | "video" | "audio" => Tag::Embed,
            "input" | "textarea" | "select" | "button" => Tag::Control,
            "figure" => Tag::Figure,
            "footer" => Tag::Footer,
            "form" => Tag::Form,
            "h1" => Tag::H(1),
            "h2" => Tag::H(2),
            "h3" => Tag::H(3),
            "h4" => Tag::H(4),
            "h5" => Tag::H(5),
            "h6" => Tag::H(6),
            "header" => Tag::Header,
            "hr" => Tag::Hr,
            "img" => Tag::Img,
            "li" => Tag::Li,
            "main" => Tag::Main,
            "math" => Tag::Math,
            "menu" => Tag::Menu,
            "nav" => Tag::Nav,
            "ol" => Tag::Ol,
            "p" => Tag::P,
            "pre" | "xmp" | "listing" | "plaintext" => Tag::Pre,
            "section" => Tag::Section,
            "span" => Tag::Span,
            "strong" | "b" => Tag::Strong,
            "sub" => Tag::Sub,
            "sup" => Tag::Sup,
            "annotation" => Tag::Tex,
            "table" => Tag::Table,
            "td" => Tag::Td,
            "th" => Tag::Th,
            "tr" => Tag::Tr,
            "tbody" | "thead" | "tfoot" => Tag::RowGroup,
            "ul" => Tag::Ul,
            "wbr" | "source" => Tag::Wbr,
            "address" | "center" | "details" | "dt" | "fieldset" | "figcaption" | "frameset" | "hgroup" | "legend"
            | "search" | "summary" => Tag::OtherBlock,
            "abbr" | "bdi" | "bdo" | "cite" | "data" | "dfn" | "ins" | "label" | "mark" | "q" | "small" | "time"
            | "u" | "var" | "picture" => Tag::OtherInline,
            _ => Tag::Other,
        }
    }

    /// Whether the element breaks the line.
    pub(crate) fn is_block(self) -> bool {
        matches!(
            self,
            Tag::Article
                | Tag::Aside
                | Tag::Blockquote
                | Tag::Body
                | Tag::Dd
                | Tag::Div
                | Tag::Dl
                | Tag::Embed
                | Tag::Figure
                | Tag::Footer
                | Tag::Form
                | Tag::H(_)
                | Tag::Header
                | Tag::Hr
                | Tag::Li
                | Tag::Main
                | Tag::Menu
                | Tag::Nav
                | Tag::Ol
                | Tag::P
                | Tag::Pre
                | Tag::Section
                | Tag::Table
                | Tag::Ul
                | Tag::OtherBlock
        )
    }

    /// Whether the element begins a line, or a cell of a table.
    pub(crate) fn divides(self) -> bool {
        self.is_block() || matches!(self, Tag::Td | Tag::Th | Tag::Tr | Tag::RowGroup | Tag::Caption)
    }

    /// Whether the element is inline, whatever it contains.
    pub(crate) fn is_inline(self) -> bool {
        matches!(
            self,
            Tag::Text
                | Tag::A
                | Tag::Br
                | Tag::Code
                | Tag::Control
                | Tag::Del
                | Tag::Em
                | Tag::Img
                | Tag::Math
                | Tag::Span
                | Tag::Strong
                | Tag::Sub
                | Tag::Sup
                | Tag::Tex
                | Tag::Wbr
                | Tag::OtherInline
        )
    }
}

/// Elements whose content is invisible to readers, or is shown only where a browser cannot do better.
pub(crate) fn is_never_read(name: &str) -> bool {
    matches!(
        name,
        "script"
            | "style"
            | "noscript"
            | "template"
            | "iframe"
            | "noembed"
            | "noframes"
            | "object"
            | "embed"
            | "canvas"
            | "link"
            | "meta"
            | "title"
            | "svg"
            | "input"
            | "button"
            | "select"
            | "datalist"
            | "textarea"
            | "dialog"
            | "head"
            | "audio"
            | "video"
    )
}

/// Elements whose content is not markup.
pub(crate) fn is_raw(name: &str) -> bool {
    matches!(name, "script" | "style" | "xmp" | "iframe" | "noembed" | "noframes" | "plaintext")
}

/// Elements without an end tag.
pub(crate) fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "basefont"
            | "bgsound"
            | "br"
            | "col"
            | "embed"
            | "frame"
            | "hr"
            | "img"
            | "input"
            | "keygen"
            | "link"
            | "meta"
            | "param"
            | "source"
            | "track"
            | "wbr"
    )
}

/// Elements whose names do not describe them.
pub(crate) fn is_bare(name: &str) -> bool {
    matches!(
        name,
        "b" | "i"
            | "em"
            | "strong"
            | "br"
            | "tr"
            | "tbody"
            | "thead"
            | "tfoot"
            | "li"
            | "dt"
            | "dd"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "u"
            | "s"
            | "del"
    )
}
