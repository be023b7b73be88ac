//! What a tenant may ask for: the settings of the installation, and the annotations of its namespace that replace them.
//!
//! The admission policy `limits` refuses a Skill or Model that is beyond a limit. These functions find those that are beyond a limit which
//! was lowered later, and the tool policy that workers enforce. A value that cannot be read allows nothing.

use crate::settings::TenantSettings;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::names;
use bloomery_crds::scripts;
use bloomery_crds::tool_pattern::{is_pattern, matches};
use bloomery_crds::v1alpha1::{Limits, ModelSpec, Skill, SkillSpec, ToolPolicy, whole_seconds};
use std::collections::BTreeMap;

/// The entry of a list that stands for everything.
const EVERYTHING: &str = "*";

/// The maximum number of entries in a tool policy, as in that of a Skill.
const MAX_TOOLS: usize = 256;

/// The limits of a namespace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TenantLimits {
    /// The prefixes of the allowed images. `None` allows all.
    images: Option<Vec<String>>,
    steps: Option<u64>,
    tool_calls: Option<u64>,
    tokens: Option<u64>,
    seconds: Option<u64>,
    tools: ToolPolicy,
    /// The names of the allowed models, or prefixes with `*` at the end. `None` allows all.
    models: Option<Vec<String>>,
    /// The prefixes of the allowed URLs of Models. `None` allows all.
    model_urls: Option<Vec<String>>,
    /// The annotations that cannot be read.
    unreadable: Vec<&'static str>,
}

impl TenantLimits {
    /// Returns the limits of a namespace with these annotations.
    pub fn new(settings: &TenantSettings, annotations: &BTreeMap<String, String>) -> Self {
        let Limits { steps, tool_calls, tokens, duration } = &settings.max_limits;
        let mut read = Reader { annotations, unreadable: Vec::new() };
        Self {
            images: read.allowed(names::ANNOTATION_ALLOWED_IMAGES, &settings.allowed_images),
            steps: read.maximum(names::ANNOTATION_MAX_STEPS, steps.map(u64::from), number),
            tool_calls: read.maximum(names::ANNOTATION_MAX_TOOL_CALLS, tool_calls.map(u64::from), number),
            tokens: read.maximum(names::ANNOTATION_MAX_TOKENS, *tokens, number),
            seconds: read.maximum(names::ANNOTATION_MAX_DURATION, duration.as_ref().map(whole_seconds), seconds),
            tools: ToolPolicy {
                allowed: read.allowed_tools(&settings.allowed_tools),
                blocked: read.blocked_tools(&settings.blocked_tools),
            },
            models: read.allowed(names::ANNOTATION_ALLOWED_MODELS, &settings.allowed_models),
            model_urls: read.allowed(names::ANNOTATION_ALLOWED_MODEL_URLS, &settings.allowed_model_urls),
            unreadable: read.unreadable,
        }
    }

    /// Returns the tool policy; none if it denies no tool.
    pub fn tools(&self) -> Option<ToolPolicy> {
        (self.tools != ToolPolicy::default()).then(|| self.tools.clone())
    }

    /// Returns a sentence for each limit that a Skill is beyond.
    pub fn exceeded(&self, skill: &SkillSpec) -> Vec<String> {
        let limits = EffectiveLimits::resolve(skill.limits(), None);
        let asked = [
            ("steps", limits.steps.into(), self.steps, ""),
            ("toolCalls", limits.tool_calls.into(), self.tool_calls, ""),
            ("tokens", limits.tokens, self.tokens, ""),
            ("duration", limits.duration_seconds, self.seconds, "s"),
        ];
        let over = asked.into_iter().filter_map(|(field, asked, max, unit)| {
            let max = max.filter(|max| asked > *max)?;
            Some(format!(
                "spec.engine.limits.{field}: the namespace allows at most {max}{unit}, and the Skill asks for {asked}{unit}."
            ))
        });
        self.remarks(|name| !is_of_tools(name)).chain(self.image_faults(skill)).chain(over).collect()
    }

    /// Returns a sentence for each limit that a Model is beyond.
    pub fn exceeded_by_model(&self, model: &ModelSpec) -> Vec<String> {
        let is_named = |asked: &str, allowed: &str| matches(allowed, asked);
        let name = fault(self.models.as_deref(), ("model", Some(&model.model)), ("use the models", is_named));
        let urls = [("baseUrl", Some(&model.base_url)), ("proxy", model.proxy.as_ref())];
        let may = ("use the URLs that begin with", is_or_is_below);
        let urls = urls.into_iter().filter_map(|asked| prefix_fault(self.model_urls.as_deref(), asked, may));
        name.into_iter().chain(urls).collect()
    }

    /// Returns a sentence about the tools of a Skill that the tool policy denies, and one for each annotation that cannot be read. Core
    /// tools need not be allowed.
    pub fn denied_tools(&self, skill: &Skill) -> Vec<String> {
        let pins = skill.status.as_ref().and_then(|status| status.tools.as_ref()?.pins.as_ref());
        let is_of_server = |name: &str| {
            pins.is_none_or(|pins| pins.others.is_some() || pins.tools.iter().any(|tool| matches(name, &tool.name)))
                || scripts::may_match(&skill.spec, name)
        };
        let is_denied =
            |name: &str| self.tools.blocking_entry(name).is_some() || (is_of_server(name) && !self.tools.allows(name));
        let declared = skill.spec.tools.iter().map(|declared| declared.name.as_str());
        let denied: Vec<&str> = declared.filter(|name| is_denied(name)).collect();
        let sentence =
            || format!("The tool policy of the namespace denies tools that the Skill declares: {}.", denied.join(", "));
        self.remarks(is_of_tools).chain((!denied.is_empty()).then(sentence)).collect()
    }

    /// Returns a sentence for each annotation that cannot be read and that `is_about` accepts.
    fn remarks(&self, is_about: impl Fn(&str) -> bool) -> impl Iterator<Item = String> {
        let unreadable = self.unreadable.iter().filter(move |name| is_about(name));
        unreadable.map(|name| format!("The annotation {name} of the namespace cannot be read, so it allows nothing."))
    }

    /// Returns a sentence for each image of a Skill that is not allowed.
    fn image_faults(&self, skill: &SkillSpec) -> Vec<String> {
        let of_server = skill.mcp_server.as_ref().and_then(|server| server.container.as_ref());
        let images = [
            ("mcpServer.container.image", of_server.map(|container| &container.image)),
            ("scripts.image", skill.scripts.as_ref().map(|scripts| &scripts.image)),
        ];
        let may = ("run images that begin with", is_image_of);
        images.into_iter().filter_map(|asked| prefix_fault(self.images.as_deref(), asked, may)).collect()
    }
}

/// Reads the annotations of a namespace.
struct Reader<'a> {
    annotations: &'a BTreeMap<String, String>,
    unreadable: Vec<&'static str>,
}

impl Reader<'_> {
    /// Returns a maximum; none if there is no maximum. If the annotation cannot be read, the maximum is 0.
    fn maximum(
        &mut self,
        name: &'static str,
        of_installation: Option<u64>,
        parse: impl Fn(&str) -> Option<u64>,
    ) -> Option<u64> {
        let Some(text) = self.annotations.get(name) else { return of_installation };
        match parse(text) {
            Some(0) => None,
            Some(maximum) => Some(maximum),
            None => {
                self.unreadable.push(name);
                Some(0)
            }
        }
    }

    /// Returns the allowed entries; none if everything is allowed.
    fn allowed(&self, name: &str, of_installation: &[String]) -> Option<Vec<String>> {
        let allowed = match self.annotations.get(name) {
            Some(text) => entries(text),
            None if of_installation.is_empty() => return None,
            None => of_installation.to_vec(),
        };
        (!allowed.iter().any(|entry| entry == EVERYTHING)).then_some(allowed)
    }

    /// Returns the allowed tools; none if all are allowed. If the annotation cannot be read, no tool is allowed.
    fn allowed_tools(&mut self, of_installation: &[String]) -> Option<Vec<String>> {
        let name = names::ANNOTATION_ALLOWED_TOOLS;
        let allowed = self.allowed(name, of_installation)?;
        Some(if self.are_tools(name, &allowed) { allowed } else { Vec::new() })
    }

    /// Returns the blocked tools. If the annotation cannot be read, all tools are blocked.
    fn blocked_tools(&mut self, of_installation: &[String]) -> Vec<String> {
        let name = names::ANNOTATION_BLOCKED_TOOLS;
        let Some(text) = self.annotations.get(name) else { return of_installation.to_vec() };
        let blocked = entries(text);
        if self.are_tools(name, &blocked) { blocked } else { vec![EVERYTHING.to_owned()] }
    }

    /// Returns whether the entries of an annotation name tools, and remembers the annotation if not.
    fn are_tools(&mut self, name: &'static str, entries: &[String]) -> bool {
        let are_tools = entries.len() <= MAX_TOOLS && entries.iter().all(|entry| is_pattern(entry));
        if !are_tools {
            self.unreadable.push(name);
        }
        are_tools
    }
}

/// Returns the entries of a list that commas separate.
fn entries(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}

/// Returns the whole seconds of a duration, at least 1 if it is not zero.
fn seconds(text: &str) -> Option<u64> {
    let duration = bloomery_crds::duration::parse(text).ok()?;
    let length = std::time::Duration::from(duration);
    let seconds = if length.is_zero() { 0 } else { length.as_secs().max(1) };
    (!duration.is_negative()).then_some(seconds)
}

/// Describes the value of a field that no entry of the list allows; none if there is no value, or no list.
fn fault(
    list: Option<&[String]>,
    (field, asked): (&str, Option<&String>),
    (may, allows): (&str, impl Fn(&str, &str) -> bool),
) -> Option<String> {
    let (list, asked) = (list?, asked?);
    if list.is_empty() {
        return Some(format!("spec.{field}: the namespace allows none."));
    }
    let is_allowed = list.iter().any(|allowed| allows(asked, allowed));
    (!is_allowed).then(|| format!("spec.{field}: the namespace may {may} {}, and not {asked}.", list.join(" or ")))
}

/// Like [`fault`], for an image or a URL, which entries allow by their prefix: also describes one that may lead out of the prefix.
fn prefix_fault(
    list: Option<&[String]>,
    (field, asked): (&str, Option<&String>),
    may: (&str, impl Fn(&str, &str) -> bool),
) -> Option<String> {
    fault(list, (field, asked), may).or_else(|| {
        list?;
        let asked = asked.filter(|asked| may_leave_prefix(asked))?;
        Some(format!(
            "spec.{field}: the namespace allows prefixes, so a backslash, a control character, %25 and the segments . and .. \
             are refused, also percent-encoded, and it is {asked}."
        ))
    })
}

/// Returns whether a client or a server may resolve an image or a URL to a path that does not begin with its first segments. The admission
/// policy decides the same.
fn may_leave_prefix(asked: &str) -> bool {
    let decoded = asked.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "\\");
    // An encoded percent sign could hide an encoded dot from one decoder and not from the next. Some servers cut segments at a semicolon.
    decoded.contains("%25")
        || decoded.contains(|found: char| found == '\\' || found.is_ascii_control())
        || decoded.split(['/', ';']).any(|segment| matches!(segment, "." | ".."))
}

/// Returns whether an image is an allowed entry, or is below it, or is a tag or digest of it. The admission policy decides the same.
fn is_image_of(image: &str, allowed: &str) -> bool {
    let is_tag = |rest: &str| rest.starts_with([':', '@']) && !rest.contains('/');
    is_or_is_below(image, allowed) || image.strip_prefix(allowed).is_some_and(is_tag)
}

/// Returns whether an image or a URL is an allowed entry, or is below it. The admission policy decides the same.
fn is_or_is_below(asked: &str, allowed: &str) -> bool {
    let Some(rest) = asked.strip_prefix(allowed) else { return false };
    rest.is_empty() || allowed.ends_with('/') || rest.starts_with('/')
}

fn is_of_tools(annotation: &str) -> bool {
    [names::ANNOTATION_ALLOWED_TOOLS, names::ANNOTATION_BLOCKED_TOOLS].contains(&annotation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::fixtures;
    use bloomery_crds::Digest;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn settings() -> TenantSettings {
        serde_json::from_value(json!({
            "allowedImages": ["registry.example/team"],
            "maxLimits": {"steps": 60, "toolCalls": null, "tokens": 100_000, "duration": "1h"},
            "allowedTools": ["get_*", "send_mail"],
            "blockedTools": ["get_secret"],
            "allowedModels": ["gpt-5-mini", "claude-*"],
            "allowedModelUrls": ["https://api.example/v1", "https://gateway.example/"],
        }))
        .unwrap()
    }

    fn limits(settings: &TenantSettings, annotations: &[(&str, &str)]) -> TenantLimits {
        let annotations = annotations.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        TenantLimits::new(settings, &annotations.collect())
    }

    fn model(name: &str, url: &str, proxy: Option<&str>) -> ModelSpec {
        let mut model = fixtures::model("default").spec;
        (model.model, model.base_url, model.proxy) = (name.to_owned(), url.to_owned(), proxy.map(str::to_owned));
        model
    }

    fn skill(spec: &Value) -> Skill {
        let mut skill = fixtures::without_server();
        skill.spec = serde_json::from_value(spec.clone()).unwrap();
        skill
    }

    fn asking(image: &str, limits: &str) -> Skill {
        let server = json!({"container": {"image": image}});
        let limits: Value = serde_json::from_str(limits).unwrap();
        skill(&json!({"problem": {"statement": "p"}, "mcpServer": server, "engine": {"limits": limits}}))
    }

    #[test]
    fn nothing_is_limited_by_default() {
        let limits = limits(&TenantSettings::default(), &[]);
        let skill = asking("anyone/server:1", r#"{"tokens": 900000000}"#);
        assert_eq!((limits.tools(), limits.exceeded(&skill.spec)), (None, Vec::new()));
        assert_eq!(limits.denied_tools(&skill), [""; 0]);
        assert_eq!(limits.exceeded_by_model(&model("gpt-5", "http://elsewhere", None)), [""; 0]);
    }

    #[rstest]
    #[case::of_the_installation(&[], Some((Some(vec!["get_*", "send_mail"]), vec!["get_secret"])))]
    #[case::an_annotation_replaces_it(
        &[("bloomery.dev/allowed-tools", "a, b*,"), ("bloomery.dev/blocked-tools", "b2")],
        Some((Some(vec!["a", "b*"]), vec!["b2"])),
    )]
    #[case::nothing_is_allowed(&[("bloomery.dev/allowed-tools", "")], Some((Some(vec![]), vec!["get_secret"])))]
    #[case::everything(&[("bloomery.dev/allowed-tools", "a,*"), ("bloomery.dev/blocked-tools", "")], None)]
    #[case::not_readable(
        &[("bloomery.dev/allowed-tools", "a,*_b"), ("bloomery.dev/blocked-tools", "a b")],
        Some((Some(vec![]), vec!["*"])),
    )]
    fn the_tool_policy_of_a_namespace(
        #[case] annotations: &[(&str, &str)],
        #[case] expected: Option<(Option<Vec<&str>>, Vec<&str>)>,
    ) {
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let expected =
            expected.map(|(allowed, blocked)| ToolPolicy { allowed: allowed.map(owned), blocked: owned(blocked) });
        assert_eq!(limits(&settings(), annotations).tools(), expected);
    }

    #[test]
    fn a_list_of_tools_that_is_too_long_cannot_be_read() {
        let long = "a,".repeat(MAX_TOOLS + 1);
        let limits = limits(&settings(), &[("bloomery.dev/blocked-tools", &long)]);
        assert_eq!(limits.tools().unwrap().blocked, ["*"]);
    }

    #[test]
    fn the_declared_tools_that_are_denied_are_named() {
        let tools =
            json!([{"name": "get_secret"}, {"name": "get_order"}, {"name": "send_money"}, {"name": "http_get"}]);
        let mut skill = skill(&json!({"problem": {"statement": "p"}, "tools": tools}));
        let denied = |skill: &Skill, annotations: &[_]| limits(&settings(), annotations).denied_tools(skill);
        let sentence =
            |tools| format!("The tool policy of the namespace denies tools that the Skill declares: {tools}.");
        assert_eq!(denied(&skill, &[]), [sentence("get_secret, send_money, http_get")]);
        // Once the tools of the server are known, the others are core tools.
        let digest = Digest::of_bytes(b"tools");
        let pins = json!({"tools": [{"name": "get_order", "digest": "1"}, {"name": "send_money", "digest": "2"}]});
        let found = json!({"key": digest, "rules": digest, "digest": digest, "count": 2, "at": "2026-01-01T00:00:00Z"});
        let tools = json!({"server": digest, "pins": pins, "found": found});
        skill.status = Some(serde_json::from_value(json!({"tools": tools})).unwrap());
        assert_eq!(denied(&skill, &[]), [sentence("get_secret, send_money")]);
        let scripts = json!({"image": "busybox", "files": {"http_get": "exit 0"}});
        let mut with_script = skill.clone();
        with_script.spec.scripts = serde_json::from_value(scripts).unwrap();
        with_script.spec.tools[3].name = "script_http_get".into();
        assert_eq!(denied(&with_script, &[]), [sentence("get_secret, send_money, script_http_get")]);
        let unreadable =
            "The annotation bloomery.dev/blocked-tools of the namespace cannot be read, so it allows nothing.";
        let all = sentence("get_secret, get_order, send_money, http_get");
        assert_eq!(denied(&skill, &[("bloomery.dev/blocked-tools", "*x")]), [unreadable.to_owned(), all]);
    }

    #[rstest]
    #[case::within(&[], "registry.example/team/server:1", r#"{"tokens": 100000, "duration": "1h", "steps": 60}"#, &[])]
    #[case::beyond_the_default(
        &[], "registry.example/team/server:1", "{}",
        &["spec.engine.limits.tokens: the namespace allows at most 100000, and the Skill asks for 200000."],
    )]
    #[case::beyond_all(
        &[("bloomery.dev/max-tool-calls", "5"), ("bloomery.dev/max-tokens", "7")], "docker.io/a:1",
        r#"{"steps": 61, "tokens": 8, "toolCalls": 6, "duration": "61m"}"#,
        &[
            "spec.mcpServer.container.image: the namespace may run images that begin with registry.example/team, and not docker.io/a:1.",
            "spec.engine.limits.steps: the namespace allows at most 60, and the Skill asks for 61.",
            "spec.engine.limits.toolCalls: the namespace allows at most 5, and the Skill asks for 6.",
            "spec.engine.limits.tokens: the namespace allows at most 7, and the Skill asks for 8.",
            "spec.engine.limits.duration: the namespace allows at most 3600s, and the Skill asks for 3660s.",
        ],
    )]
    #[case::no_maximum(
        &[("bloomery.dev/max-tokens", "0"), ("bloomery.dev/max-duration", "0s"), ("bloomery.dev/allowed-images", "*")],
        "docker.io/a:1", r#"{"tokens": 900000, "duration": "9h"}"#, &[],
    )]
    #[case::not_readable(
        &[("bloomery.dev/max-tokens", "many"), ("bloomery.dev/max-duration", "soon")],
        "registry.example/team/server:1", r#"{"tokens": 1, "duration": "1s"}"#,
        &[
            "The annotation bloomery.dev/max-tokens of the namespace cannot be read, so it allows nothing.",
            "The annotation bloomery.dev/max-duration of the namespace cannot be read, so it allows nothing.",
            "spec.engine.limits.tokens: the namespace allows at most 0, and the Skill asks for 1.",
            "spec.engine.limits.duration: the namespace allows at most 0s, and the Skill asks for 1s.",
        ],
    )]
    #[case::too_long(
        &[("bloomery.dev/max-duration", "18446744073709551615h")],
        "registry.example/team/server:1", r#"{"tokens": 1, "duration": "1s"}"#,
        &[
            "The annotation bloomery.dev/max-duration of the namespace cannot be read, so it allows nothing.",
            "spec.engine.limits.duration: the namespace allows at most 0s, and the Skill asks for 1s.",
        ],
    )]
    fn a_skill_beyond_a_limit_is_described(
        #[case] annotations: &[(&str, &str)],
        #[case] image: &str,
        #[case] asked: &str,
        #[case] expected: &[&str],
    ) {
        assert_eq!(limits(&settings(), annotations).exceeded(&asking(image, asked).spec), expected);
    }

    #[test]
    fn the_image_of_scripts_must_be_allowed() {
        let exceeded = |image: &str| {
            let scripts = json!({"image": image, "files": {"check.sh": "exit 0"}});
            let limits = json!({"limits": {"tokens": 1}});
            let skill = skill(&json!({"problem": {"statement": "p"}, "scripts": scripts, "engine": limits}));
            limits_of_images().exceeded(&skill.spec)
        };
        assert_eq!(exceeded("registry.example/team/shell:1"), [""; 0]);
        let fault =
            "spec.scripts.image: the namespace may run images that begin with registry.example/team, and not busybox.";
        assert_eq!(exceeded("busybox"), [fault]);
        let [above]: [String; 1] = exceeded("registry.example/team/../evil:1").try_into().unwrap();
        assert!(above.starts_with("spec.scripts.image: the namespace allows prefixes"), "{above}");
    }

    fn limits_of_images() -> TenantLimits {
        let settings = json!({"allowedImages": ["registry.example/team"]});
        limits(&serde_json::from_value(settings).unwrap(), &[])
    }

    #[rstest]
    #[case("registry.example/team/server:1", true)]
    #[case("registry.example/team:1", true)]
    #[case("registry.example/team@sha256:aa", true)]
    #[case("registry.example/team-b/server:1", false)]
    #[case("registry.example/team:1/server", false)]
    #[case("server", false)]
    fn an_image_is_allowed_by_a_whole_name(#[case] image: &str, #[case] is_allowed: bool) {
        assert_eq!(is_image_of(image, "registry.example/team"), is_allowed);
    }

    #[rstest]
    #[case("http://model:8080/team-a/../v1", true)]
    #[case("http://model:8080/team-a/..", true)]
    #[case("http://model:8080/team-a/./v1", true)]
    #[case("http://model:8080/team-a/%2e%2E/v1", true)]
    #[case("http://model:8080/team-a/.%2e/v1", true)]
    #[case("http://model:8080/team-a/..%2Fv1", true)]
    #[case("http://model:8080/team-a/..\\v1", true)]
    #[case("http://model:8080/team-a/%5C..%5cv1", true)]
    #[case("http://model:8080/team-a/.\t./v1", true)]
    #[case("http://model:8080/team-a/%252e%252e/v1", true)]
    #[case("http://model:8080/team-a/..;a=b/v1", true)]
    #[case("registry.example/team/../evil/x:1", true)]
    #[case("http://model.acme.svc:8080/team-a/v1.2/...", false)]
    #[case("http://model:8080/team-a/my..model/%20", false)]
    #[case("registry.example/team/server:1.2", false)]
    fn what_may_lead_out_of_its_prefix_is_found(#[case] asked: &str, #[case] expected: bool) {
        assert_eq!(may_leave_prefix(asked), expected);
    }

    #[rstest]
    #[case::within(&[], ("gpt-5-mini", "https://api.example/v1", None), &[])]
    #[case::below(&[], ("claude-sonnet-5", "https://api.example/v1/eu", Some("https://gateway.example/a")), &[])]
    #[case::beyond_all(
        &[], ("gpt-5", "https://api.example/v1.evil.example", Some("https://gateway.example.evil")),
        &[
            "spec.model: the namespace may use the models gpt-5-mini or claude-*, and not gpt-5.",
            "spec.baseUrl: the namespace may use the URLs that begin with https://api.example/v1 or https://gateway.example/, \
             and not https://api.example/v1.evil.example.",
            "spec.proxy: the namespace may use the URLs that begin with https://api.example/v1 or https://gateway.example/, \
             and not https://gateway.example.evil.",
        ],
    )]
    #[case::an_annotation_replaces_it(
        &[("bloomery.dev/allowed-models", "*"), ("bloomery.dev/allowed-model-urls", "http://model.acme.svc")],
        ("gpt-5", "https://api.example/v1", Some("http://model.acme.svc/x")),
        &["spec.baseUrl: the namespace may use the URLs that begin with http://model.acme.svc, and not https://api.example/v1."],
    )]
    #[case::above_the_prefix(
        &[], ("gpt-5-mini", "https://api.example/v1/../v2", Some("https://gateway.example/%2e%2e")),
        &[
            "spec.baseUrl: the namespace allows prefixes, so a backslash, a control character, %25 and the segments . and .. \
             are refused, also percent-encoded, and it is https://api.example/v1/../v2.",
            "spec.proxy: the namespace allows prefixes, so a backslash, a control character, %25 and the segments . and .. \
             are refused, also percent-encoded, and it is https://gateway.example/%2e%2e.",
        ],
    )]
    #[case::everything_is_allowed(
        &[("bloomery.dev/allowed-model-urls", "*")], ("gpt-5-mini", "https://api.example/v1/../v2", None), &[],
    )]
    #[case::nothing_is_allowed(
        &[("bloomery.dev/allowed-models", "")], ("claude-sonnet-5", "https://api.example/v1", None),
        &["spec.model: the namespace allows none."],
    )]
    fn a_model_beyond_a_limit_is_described(
        #[case] annotations: &[(&str, &str)],
        #[case] asked: (&str, &str, Option<&str>),
        #[case] expected: &[&str],
    ) {
        let (name, url, proxy) = asked;
        assert_eq!(limits(&settings(), annotations).exceeded_by_model(&model(name, url, proxy)), expected);
    }
}
