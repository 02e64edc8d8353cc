//! The TLS certificate. It is read at the start, and again when its files change or the process gets a signal. Open
//! connections keep their certificate. An invalid file changes nothing and is logged.

use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::ServerConfig;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use tokio_rustls::TlsAcceptor;

/// Why the files are not a valid certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("{0} cannot be read as PEM: {1}")]
    Pem(PathBuf, rustls::pki_types::pem::Error),
    #[error("{0} holds no certificate")]
    NoCertificate(PathBuf),
    #[error("the certificate and the key cannot be used: {0}")]
    Tls(#[from] rustls::Error),
}

type Changed = [Option<SystemTime>; 2];

/// The current certificate, and its files.
#[derive(Debug)]
pub struct Certificate {
    chain: PathBuf,
    key: PathBuf,
    current: Mutex<(Arc<ServerConfig>, Changed)>,
}

impl Certificate {
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, CertificateError> {
        // The modification times are read before the files, so that a change in between causes another read.
        let changed = [modified(certificate), modified(key)];
        let config = read(certificate, key)?;
        Ok(Self { chain: certificate.to_owned(), key: key.to_owned(), current: Mutex::new((config, changed)) })
    }

    /// The acceptor for the next connection.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.current.lock().0))
    }

    /// Reads the files again if they changed since the last check. Blocks. Called about once a second.
    pub fn follow(&self) {
        let changed = [modified(&self.chain), modified(&self.key)];
        if changed != self.current.lock().1 {
            self.reload();
        }
    }

    /// Reads the files again. Blocks.
    pub fn reload(&self) {
        let changed = [modified(&self.chain), modified(&self.key)];
        match read(&self.chain, &self.key) {
            Ok(config) => {
                *self.current.lock() = (config, changed);
                tracing::info!("the TLS certificate was read again");
            }
            Err(error) => {
                self.current.lock().1 = changed;
                tracing::error!(%error, "the TLS certificate stays as it was");
            }
        }
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|found| found.modified()).ok()
}

fn read(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, CertificateError> {
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| CertificateError::Pem(certificate.to_owned(), error))?;
    if chain.is_empty() {
        return Err(CertificateError::NoCertificate(certificate.to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| CertificateError::Pem(key.to_owned(), error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
