//! Results of control's commands, stored until control has received them.

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;

/// The result of a command: `result`, or `error` as text.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    pub id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'static str>,
}

/// Reports that control has not received yet.
#[derive(Debug, Default)]
pub struct UnsentReports(Mutex<Vec<Report>>);

impl UnsentReports {
    /// Adds the report of a finished command.
    pub fn push(&self, report: Report) {
        self.0.lock().push(report);
    }

    pub fn unsent(&self) -> Vec<Report> {
        self.0.lock().clone()
    }

    pub fn forget(&self, sent: &[Report]) {
        self.0.lock().retain(|report| sent.iter().all(|one| one.id != report.id));
    }
}
