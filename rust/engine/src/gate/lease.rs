//! The headers by which a caller proves that a connection is leased to its session.

use fairlead_core::{Error, ErrorKind, SessionClaim};

const OWNER: &str = "X-Gateway-Lease-Owner";
const GENERATION: &str = "X-Gateway-Lease-Generation";
const PREFIX: &str = "vlo_";
/// 256 bits as base64url.
const NAME_CHARS: usize = 43;

/// The headers as sent.
#[derive(Debug, Default, Clone, Copy)]
pub struct LeaseHeaders<'a> {
    owner: Option<&'a str>,
    generation: Option<&'a str>,
}

impl<'a> LeaseHeaders<'a> {
    pub fn take(&mut self, name: &[u8], value: &'a str) {
        match name {
            b"x-gateway-lease-owner" => self.owner = Some(value),
            b"x-gateway-lease-generation" => self.generation = Some(value),
            _ => {}
        }
    }

    /// Returns the claim; `None` if neither header was sent.
    pub fn claim(&self) -> Result<Option<Box<SessionClaim>>, Error> {
        let owner = match (self.owner, self.generation) {
            (Some(owner), _) => owner,
            (None, Some(_)) => return Err(wrong(OWNER, "is missing beside X-Gateway-Lease-Generation")),
            (None, None) => return Ok(None),
        };
        if !is_owner(owner) {
            return Err(wrong(OWNER, "must be `vlo_` and 43 characters of base64url"));
        }
        let generation = self.generation.map(str::parse::<u64>).transpose();
        let generation =
            generation.map_err(|_| wrong(GENERATION, "must be the number that the lease was given with"))?;
        Ok(Some(Box::new(SessionClaim::new(owner, generation))))
    }
}

fn is_owner(text: &str) -> bool {
    let name = text.strip_prefix(PREFIX).unwrap_or_default();
    name.len() == NAME_CHARS && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn wrong(header: &'static str, rule: &str) -> Error {
    Error::client(ErrorKind::InvalidRequest, format!("{header} {rule}.")).about(header.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(owner: Option<&str>, generation: Option<&str>) -> Result<Option<Box<SessionClaim>>, Option<String>> {
        LeaseHeaders { owner, generation }.claim().map_err(|fault| fault.param.map(Into::into))
    }

    #[test]
    fn an_owner_is_a_secret_name_and_a_generation_a_number() {
        let name = format!("vlo_{}", "a-_9".repeat(11).get(..43).expect("43"));
        assert_eq!(claim(None, None), Ok(None));
        let both = claim(Some(&name), Some("12")).expect("a claim").expect("sent");
        assert_eq!(both.generation, Some(12));
        assert!(claim(Some(&name), None).expect("a claim").is_some());
        for owner in ["", "vlo_", &name[..46], &format!("{name}x"), &name.replace('9', "+")] {
            assert_eq!(claim(Some(owner), None), Err(Some("x-gateway-lease-owner".into())), "{owner}");
        }
        assert_eq!(claim(None, Some("1")), Err(Some("x-gateway-lease-owner".into())));
        for generation in ["", "-1", "1.0", "99999999999999999999"] {
            assert_eq!(claim(Some(&name), Some(generation)), Err(Some("x-gateway-lease-generation".into())));
        }
    }
}
