//! Resolves names with the system's resolver, which may block a thread for an unlimited time.
//!
//! A name that hangs must not occupy the threads that other names need. Each name has at most two lookups in progress,
//! and a lookup whose caller gave up still counts until the system returns.

use crate::blocking;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::Arc;
use tokio::sync::Semaphore;

const LOOKUPS_PER_NAME: usize = 2;
/// The maximum number of names with a counter. Beyond this number all counters are reset.
const MAX_NAMES: usize = 4_096;

/// Resolves the names of providers.
#[derive(Debug, Default)]
pub struct Resolver {
    lookups_by_name: Mutex<HashMap<Box<str>, Arc<Semaphore>>>,
}

impl Resolver {
    /// Returns every address of the name, in the system's order. The caller sets the deadline.
    pub async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let lookups_of = self.lookups_of(host).acquire_owned().await.map_err(io::Error::other)?;
        let host = host.to_owned();
        let found = blocking::names(move || {
            let addresses = (host.as_str(), 0).to_socket_addrs().map(|all| all.map(|address| address.ip()).collect());
            drop(lookups_of);
            addresses
        });
        found.await?
    }

    fn lookups_of(&self, host: &str) -> Arc<Semaphore> {
        let mut lookups_by_name = self.lookups_by_name.lock();
        if let Some(lookups_of) = lookups_by_name.get(host) {
            return Arc::clone(lookups_of);
        }
        if lookups_by_name.len() >= MAX_NAMES {
            lookups_by_name.clear();
        }
        let lookups_of = Arc::new(Semaphore::new(LOOKUPS_PER_NAME));
        lookups_by_name.insert(host.into(), Arc::clone(&lookups_of));
        lookups_of
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_on_this_machine_resolves_to_it() {
        let found = Resolver::default().resolve("localhost").await.expect("resolved");
        assert!(found.iter().all(IpAddr::is_loopback) && !found.is_empty());
    }

    #[tokio::test]
    async fn a_name_that_hangs_has_two_places_and_others_have_their_own() {
        let resolver = Resolver::default();
        let slow = resolver.lookups_of("slow");
        let _held = slow.acquire_many(LOOKUPS_PER_NAME as u32).await.expect("free");
        assert_eq!(resolver.lookups_of("slow").available_permits(), 0);
        assert_eq!(resolver.lookups_of("other").available_permits(), LOOKUPS_PER_NAME);
    }
}
