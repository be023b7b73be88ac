//! The figures of a run, as a table for people and as JSON for programs. `gateway/benches` contains this file too.

use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// One figure.
#[derive(Debug, Serialize)]
struct Figure {
    section: &'static str,
    name: String,
    value: f64,
    unit: &'static str,
    /// The limit, if the figure has a goal.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most: Option<f64>,
}

impl Figure {
    fn is_missed(&self) -> bool {
        self.at_most.is_some_and(|limit| self.value > limit)
    }

    fn verdict(&self) -> String {
        match self.at_most {
            None => String::new(),
            Some(limit) => {
                format!("<= {limit} {}  {}", self.unit, if self.is_missed() { "MISSED" } else { "met" })
            }
        }
    }
}

/// All figures of a run.
#[derive(Debug, Default)]
pub(crate) struct Figures(Vec<Figure>);

impl Figures {
    /// Adds a figure without a goal.
    pub(crate) fn report(&mut self, section: &'static str, name: impl Into<String>, value: f64, unit: &'static str) {
        self.add(Figure { section, name: name.into(), value, unit, at_most: None });
    }

    /// Adds a figure with a goal: it must be at most `limit`.
    pub(crate) fn require(
        &mut self,
        section: &'static str,
        name: impl Into<String>,
        (value, unit): (f64, &'static str),
        limit: f64,
    ) {
        self.add(Figure { section, name: name.into(), value, unit, at_most: Some(limit) });
    }

    /// Returns whether a goal was missed.
    pub(crate) fn has_missed_goal(&self) -> bool {
        self.0.iter().any(Figure::is_missed)
    }

    /// Returns a table with one line for each figure.
    pub(crate) fn table(&self) -> String {
        let width = self.0.iter().map(|figure| figure.name.len()).max().unwrap_or_default();
        let mut table = String::new();
        for figure in &self.0 {
            let Figure { section, name, value, unit, .. } = figure;
            let _ = write!(table, "{section:<8} {name:<width$} {value:>10.3} {unit:<3} ");
            let _ = writeln!(table, "{}", figure.verdict());
        }
        table
    }

    /// Returns all figures as JSON.
    pub(crate) fn json(&self) -> String {
        serde_json::to_string_pretty(&serde_json::json!({ "met": !self.has_missed_goal(), "figures": self.0 })).unwrap()
            + "\n"
    }

    fn add(&mut self, figure: Figure) {
        let Figure { section, name, value, unit, .. } = &figure;
        eprintln!("{section}: {name} = {value:.3} {unit} {}", figure.verdict());
        self.0.push(figure);
    }
}

/// Returns a time in milliseconds.
pub(crate) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Returns a time in microseconds.
pub(crate) fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Returns a number of things as a figure.
pub(crate) fn count(things: usize) -> f64 {
    f64::from(u32::try_from(things).unwrap())
}
