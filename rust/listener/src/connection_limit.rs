//! Limits the number of connections, in total and per address.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

/// The connection limits, and the current counts.
#[derive(Debug)]
pub struct ConnectionLimit {
    open: AtomicUsize,
    refused: AtomicU64,
    max: usize,
    /// The maximum number of connections per address; 0 means no limit.
    max_per_address: usize,
    of_address: Mutex<HashMap<IpAddr, usize>>,
}

/// One connection, counted until it is dropped.
#[derive(Debug)]
pub struct Permit {
    quota: Arc<ConnectionLimit>,
    address: Option<IpAddr>,
}

impl ConnectionLimit {
    pub fn new(max: usize, max_per_address: usize) -> Arc<Self> {
        Arc::new(Self {
            open: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            max,
            max_per_address,
            of_address: Mutex::default(),
        })
    }

    /// Counts a connection. Returns `None` if a limit is reached.
    pub fn take(self: &Arc<Self>, peer: IpAddr) -> Option<Permit> {
        let counted = self.open.fetch_add(1, Ordering::AcqRel) < self.max;
        // Dropping the permit undoes the count.
        let mut permit = Permit { quota: Arc::clone(self), address: None };
        let is_free = counted && (self.max_per_address == 0 || self.count(&mut permit, group(peer)));
        if !is_free {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        is_free.then_some(permit)
    }

    fn count(&self, permit: &mut Permit, address: IpAddr) -> bool {
        let mut of_address = self.of_address.lock();
        let open = of_address.entry(address).or_default();
        let is_free = *open < self.max_per_address;
        if is_free {
            *open += 1;
            permit.address = Some(address);
        }
        is_free
    }

    pub fn open(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }

    /// The number of connections that were refused since the start.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.quota.open.fetch_sub(1, Ordering::AcqRel);
        let Some(address) = self.address else { return };
        let mut of_address = self.quota.of_address.lock();
        if let Some(open) = of_address.get_mut(&address) {
            *open -= 1;
            if *open == 0 {
                of_address.remove(&address);
            }
        }
    }
}

/// The unit of the limit per address: an IPv4 address, or in IPv6 the network that one customer usually gets.
fn group(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let bits = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(bits))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_place_is_given_back() {
        let quota = ConnectionLimit::new(1, 0);
        let first = quota.take(address("192.0.2.1")).expect("engine");
        assert!(quota.take(address("192.0.2.2")).is_none());
        drop(first);
        assert!(quota.take(address("192.0.2.2")).is_some());
        assert_eq!((quota.open(), quota.refused()), (0, 1));
    }

    #[test]
    fn one_address_does_not_take_every_place() {
        let quota = ConnectionLimit::new(10, 2);
        let own: Vec<_> = (0..2).map(|_| quota.take(address("192.0.2.1")).expect("engine")).collect();
        assert!(quota.take(address("::ffff:192.0.2.1")).is_none());
        let _other = quota.take(address("192.0.2.2")).expect("engine");
        drop(own);
        assert!(quota.take(address("192.0.2.1")).is_some());
        assert_eq!(quota.of_address.lock().len(), 1);
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let quota = ConnectionLimit::new(10, 1);
        let _first = quota.take(address("2001:db8::1")).expect("engine");
        assert!(quota.take(address("2001:db8::2")).is_none());
        assert!(quota.take(address("2001:db8:0:1::1")).is_some());
    }
}
