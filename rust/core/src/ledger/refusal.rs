//! The error messages for exhausted limits.

use crate::error::{Error, ErrorKind};
use crate::limit::{Limit, LimitPeriod, LimitScope, LimitUnit, Window};

pub fn limits_unknown() -> Error {
    Error::gateway(ErrorKind::LimitsUnknown, "The key's usage is being read; try again shortly.").after_s(1)
}

pub fn limits_lost() -> Error {
    let message = "The shared store of the limits (FAIRLEAD_SHARED_URL) does not answer, and this limit needs it; try again shortly.";
    Error::gateway(ErrorKind::LimitsUnknown, message).after_s(1)
}

/// The error for a request that does not fit. `used` and `taken` (used or reserved) are the amounts in the window that
/// this node knows.
pub fn exceeded(limit: &Limit, window: Window, (used, taken): (u64, u64), amount: u64, now_ms: u64) -> Error {
    let show = |amount: u64| match limit.unit {
        LimitUnit::Requests => format!("{amount} requests"),
        LimitUnit::Tokens => format!("{amount} tokens"),
        LimitUnit::UsdMicros => format!("{}.{:06} USD", amount / 1_000_000, amount % 1_000_000),
    };
    let scope = match &limit.scope {
        LimitScope::All => String::new(),
        LimitScope::Model(name) | LimitScope::Provider(name) => format!(" on `{name}`"),
    };
    let seconds = (window.ends_ms - window.starts_ms) / 1_000;
    let period = match limit.period {
        LimitPeriod::Seconds(_) => format!("{seconds} s"),
        LimitPeriod::Day(_) => "day".to_owned(),
        LimitPeriod::Week(_) => "week".to_owned(),
        LimitPeriod::Month(_) => "month".to_owned(),
    };
    let wait_s = window.ends_ms.saturating_sub(now_ms).div_ceil(1_000).max(1);
    let (left, retry_after_s) = if used >= limit.amount {
        (format!("{} used", show(used)), wait_s)
    } else if limit.unit != LimitUnit::Requests && amount > limit.amount - used {
        // Waiting for other requests does not help, because this request alone may need more than is left.
        (
            format!(
                "{} left, and this request may need {}; ask for less output",
                show(limit.amount - used),
                show(amount)
            ),
            wait_s,
        )
    } else {
        (format!("{} reserved by requests in progress", show(taken)), 1)
    };
    let level = limit.group.as_ref().map_or_else(String::new, |group| format!(" of the group `{}`", group.name));
    let message = format!(
        "The limit of {} in each {period}{scope}{level} (`{}`) is reached: {left}.",
        show(limit.amount),
        limit.name
    );
    let kind = match limit.unit {
        LimitUnit::Requests => ErrorKind::RateLimited,
        LimitUnit::Tokens => ErrorKind::TokenLimitExceeded,
        LimitUnit::UsdMicros => ErrorKind::BudgetExceeded,
    };
    let counter_name = limit.group.as_ref().map_or_else(String::new, |group| format!("groups.{}.", group.id));
    Error::client(kind, message).about(format!("{counter_name}{}", limit.name)).after_s(retry_after_s)
}
