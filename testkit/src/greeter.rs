//! The Skill `greeter`, which has neither resources nor tools, and conversations with it for the scripted model.

/// The file of the Skill.
pub const SKILL: &str = "apiVersion: bloomery.dev/v1alpha1
kind: Skill
metadata: {name: greeter}
spec:
  problem: {statement: Greet people}
";

/// A script with one answer, which passes its gate.
pub const SAYS_HELLO: &str = "
conversations:
  - name: hello
    turns: [{say: Hello.}]
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Hello.}]
";

/// A script that asks the user a question, and then answers.
pub const ASKS: &str = "
conversations:
  - name: asks
    turns:
      - {calls: [{name: ask_user, arguments: {text: 'Whom?', choices: [Jane, Joe]}}]}
      - {say: Hello.}
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Hello.}]
";
