//! Reads YAML into documents, within bounds. It uses the events of the crate `granit-parser`, because a deserializer does not
//! return the place of every value.

pub(crate) mod ambiguous;
mod items;
mod open;
mod scalar;

use crate::document::{Document, Documents};
use crate::finding::{Finding, Severity};
use crate::tree::{Entry, Node, Path, Place, Value};
use bloomery_crds::text::bounded;
use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use open::{Content, Key, OpenCollection, to_key};
use std::collections::HashMap;

/// The largest input, in bytes. It is larger than any object in a cluster.
pub const MAX_BYTES: usize = 1024 * 1024;

/// The deepest nesting of lists and maps.
pub const MAX_DEPTH: usize = 64;

/// The largest number of documents in an input.
pub const MAX_DOCUMENTS: usize = 100;

/// The largest number of values and keys in an input.
pub const MAX_NODES: usize = 50_000;

/// The largest number of reported YAML faults of an input.
const MAX_FAULTS: usize = 500;

/// Reads all documents of an input. A broken document is reported and skipped. Each item of a `List` is a document.
pub fn read(bytes: &[u8]) -> Documents {
    let unreadable = |message: String, hint: &str| Documents {
        documents: Vec::new(),
        findings: vec![Finding::of_file(message).hint(hint)],
    };
    if bytes.len() > MAX_BYTES {
        // The real size is not known: the caller may have stopped reading at the limit.
        let message = format!("the input is larger than {} MiB, the largest allowed size", MAX_BYTES / (1024 * 1024));
        return unreadable(message, "put large texts into files that the MCP server can read");
    }
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        return unreadable("the input is UTF-16".to_owned(), "save it as UTF-8");
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Reader::new(text).read(),
        Err(error) => {
            let finding = Finding::not_utf8(bytes, error.valid_up_to());
            Documents { documents: Vec::new(), findings: vec![finding] }
        }
    }
}

/// The state of the reader between two events of the parser.
struct Reader<'t> {
    parser: Parser<'t, StrInput<'t>>,
    /// The lists and maps around the next value, the outermost first.
    open: Vec<OpenCollection>,
    /// The root of the current document, once it is complete.
    root: Option<Node>,
    /// The document paths of unsupported values in the current document.
    refused: Vec<String>,
    /// The number of values in all documents.
    nodes: usize,
    output: Documents,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str) -> Self {
        let mut options = granit_parser::options! {
            flow_nesting_limit: MAX_DEPTH,
            block_nesting_limit: MAX_DEPTH,
            emit_unresolved_aliases: true,
        };
        options.set_emit_comments(false);
        Self {
            parser: Parser::new_from_str_with_options(text, options),
            open: Vec::new(),
            root: None,
            refused: Vec::new(),
            nodes: 0,
            output: Documents::default(),
        }
    }

    fn read(mut self) -> Documents {
        let mut document_count = 0;
        while let Some(next) = self.parser.next_event() {
            match next {
                Ok((Event::DocumentStart(..), span)) => {
                    document_count += 1;
                    if document_count > MAX_DOCUMENTS {
                        self.report_limit(
                            &span,
                            format!("there are more than {MAX_DOCUMENTS} documents: the rest is not read"),
                        );
                        break;
                    }
                }
                Ok((Event::DocumentEnd, _)) => self.finish_document(),
                Ok((event, span)) => {
                    if !self.handle(event, &span) {
                        break;
                    }
                }
                Err(error) => {
                    self.report_scan_error(&error);
                    self.reset();
                    if !matches!(self.parser.proceed_next_document(), Ok(true)) {
                        break;
                    }
                }
            }
        }
        self.output
    }

    /// Handles one event. Returns false if the input exceeds a limit.
    fn handle(&mut self, event: Event<'t>, span: &Span) -> bool {
        let opens_collection = matches!(event, Event::SequenceStart(..) | Event::MappingStart(..));
        self.nodes += usize::from(opens_collection || matches!(event, Event::Scalar(..)));
        if self.nodes > MAX_NODES {
            self.report_limit(span, format!("there are more than {MAX_NODES} values: the rest is not read"));
            return false;
        }
        if opens_collection && self.open.len() >= MAX_DEPTH {
            self.report_limit(
                span,
                format!("lists and objects are nested deeper than {MAX_DEPTH}: the rest is not read"),
            );
            return false;
        }
        match event {
            Event::Scalar(text, style, _, tag) => self.scalar(&text, style, tag.as_deref(), span),
            Event::SequenceStart(_, _, tag) => self.open_collection(Content::List(Vec::new()), tag.as_deref(), span),
            Event::MappingStart(_, _, tag) => {
                let content = Content::Map { entries: Vec::new(), seen: HashMap::new(), key: None };
                self.open_collection(content, tag.as_deref(), span);
            }
            Event::SequenceEnd | Event::MappingEnd => self.close_collection(),
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                let place = self.place(span);
                self.report(
                    Finding::error(&place, "aliases are not supported: a few of them can expand to gigabytes")
                        .hint("write the value out"),
                );
                self.put(Node { place, value: Value::Null });
            }
            _ => {}
        }
        true
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, span: &Span) {
        let place = self.place(span);
        let value = if style != ScalarStyle::Plain || self.is_text(tag, &place) {
            Value::Text { text: text.to_owned(), plain: false }
        } else if self.expects_key() {
            // A key is always a text, even `on:`.
            Value::Text { text: text.to_owned(), plain: true }
        } else {
            scalar::parse_plain(text).unwrap_or_else(|fault| {
                self.report(Finding::error(&place, fault).hint("put it in quotes if text is meant"));
                Value::Null
            })
        };
        self.put(Node { place, value });
    }

    /// Returns whether a tag makes an unquoted word a text. Reports any other tag.
    fn is_text(&mut self, tag: Option<&Tag>, place: &Place) -> bool {
        if tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str")) {
            return true;
        }
        self.report_tag(tag, place);
        false
    }

    /// Reports an unsupported tag, if there is a tag.
    fn report_tag(&mut self, tag: Option<&Tag>, place: &Place) {
        if let Some(tag) = tag {
            let message = format!("the tag {:?} is not supported", bounded(&tag.original(), 64));
            self.report(
                Finding::error(place, message)
                    .hint("leave it out; the only supported tag is !!str, which equals quotes"),
            );
        }
    }

    /// Adds a finding, and marks its value as refused. After [`MAX_FAULTS`] findings, only marks the whole document as refused.
    fn report(&mut self, finding: Finding) {
        if self.output.findings.len() < MAX_FAULTS {
            self.refused.push(finding.path.clone());
            self.output.findings.push(finding);
        } else if !self.refused.last().is_some_and(String::is_empty) {
            // The empty path means the whole document.
            self.refused.push(String::new());
        }
    }

    fn open_collection(&mut self, content: Content, tag: Option<&Tag>, span: &Span) {
        let place = self.place(span);
        self.report_tag(tag, &place);
        self.open.push(OpenCollection { place, content });
    }

    fn close_collection(&mut self) {
        let Some(OpenCollection { place, content }) = self.open.pop() else { return };
        let value = match content {
            Content::List(nodes) => Value::List(nodes),
            Content::Map { entries, .. } => Value::Map(entries),
        };
        self.put(Node { place, value });
    }

    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some(OpenCollection { content: Content::Map { key: None, .. }, .. }))
    }

    /// Adds a node to the innermost open list or map, as a key if a key is expected. If nothing is open, the node is the root.
    fn put(&mut self, node: Node) {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return;
        };
        match &mut open.content {
            Content::List(nodes) => nodes.push(node),
            Content::Map { entries, seen, key } => match key.take() {
                None => {
                    let (next_key, finding) = to_key(node, &open.place, seen);
                    *key = Some(next_key);
                    if let Some(finding) = finding {
                        self.report(finding);
                    }
                }
                Some(Key { name: Some(name), place }) => entries.push(Entry { name, place, node }),
                Some(Key { name: None, .. }) => {}
            },
        }
    }

    /// Returns the place of the next value.
    fn place(&self, span: &Span) -> Place {
        let path = match self.open.last() {
            None => Path::default(),
            Some(OpenCollection { place, content: Content::List(nodes) }) => place.path.of_item(nodes.len()),
            Some(OpenCollection { content: Content::Map { key: Some(key), .. }, .. }) => key.place.path.clone(),
            Some(OpenCollection { place, content: Content::Map { key: None, .. } }) => place.path.clone(),
        };
        Place { line: span.start.line(), column: span.start.col() + 1, path }
    }

    fn finish_document(&mut self) {
        let root = self.root.take().filter(|node| node.value != Value::Null);
        let refused = std::mem::take(&mut self.refused);
        let document = root.map(|root| Document { root, refused });
        self.output.documents.extend(document.into_iter().flat_map(items::split));
        self.reset();
    }

    /// Discards the current document.
    fn reset(&mut self) {
        self.open.clear();
        self.root = None;
        self.refused.clear();
    }

    /// Adds a finding about an exceeded limit.
    fn report_limit(&mut self, span: &Span, message: String) {
        let place = self.place(span);
        self.output.findings.push(Finding::error(&place, message));
    }

    fn report_scan_error(&mut self, error: &ScanError) {
        let marker = error.marker();
        let place = Place { line: marker.line(), column: marker.col() + 1, path: Path::default() };
        let message = format!("not valid YAML: {}", bounded(&error.info(), 256));
        let mut finding = Finding::at(&place, Severity::Error, message);
        if matches!(
            error.kind(),
            ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation
        ) {
            finding = finding.hint("indent with spaces: YAML does not allow tabs");
        }
        self.output.findings.push(finding);
    }
}
