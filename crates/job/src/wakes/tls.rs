//! TLS for webhooks. Only the delivering helper uses it, so a keeper never loads a page of it.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// Where systems keep their trusted certificates in one file.
const TRUSTED: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The file with the trusted certificates: the given one, that of `$SSL_CERT_FILE`, or the system's.
///
/// # Errors
/// In words, if there is none.
pub(super) fn trusted(ca: Option<&str>, cert_file: Option<&str>) -> Result<PathBuf, String> {
    if let Some(named) = ca.or(cert_file.filter(|file| !file.is_empty())) {
        let path = PathBuf::from(named);
        return if path.is_file() { Ok(path) } else { Err(format!("there is no file {named}")) };
    }
    let found = TRUSTED.iter().map(PathBuf::from).find(|path| path.is_file());
    found.ok_or_else(|| "no trusted certificates are found: name a file with ca = \"PATH\"".into())
}

/// Reads the certificates of a PEM file.
fn roots(file: &Path) -> Result<RootCertStore, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| unreadable(&error))?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        // A system's file may have one that is not understood; the others still count.
        let _ = roots.add(certificate.map_err(|error| unreadable(&error))?);
    }
    if roots.is_empty() { Err(unreadable(&"it holds no certificate that can be used")) } else { Ok(roots) }
}

/// The configuration for any number of connections.
#[derive(Clone, Debug)]
pub(super) struct Tls {
    config: Arc<ClientConfig>,
}

impl Tls {
    /// # Errors
    /// In words, if the certificates cannot be read.
    pub(super) fn new(trusted: &Path) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots(trusted)?)
            .with_no_client_auth();
        Ok(Self { config: Arc::new(config) })
    }

    /// Starts TLS on a connection to a host. The host is verified when the first bytes are written.
    pub(super) fn over(
        &self,
        stream: TcpStream,
        host: &str,
    ) -> std::io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let name = ServerName::try_from(host.to_owned()).map_err(std::io::Error::other)?;
        let connection =
            ClientConnection::new(Arc::clone(&self.config), name).map_err(std::io::Error::other)?;
        Ok(StreamOwned::new(connection, stream))
    }
}
