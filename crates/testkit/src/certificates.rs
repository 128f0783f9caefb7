//! Certificates of a certificate authority that exists only in this process.

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

/// How long certificates are valid before and after now, unless a test chooses another time.
const VALIDITY: Duration = Duration::from_secs(24 * 3600);

/// A certificate authority.
pub struct CertificateAuthority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, both as PEM.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// The certificate.
    pub cert: String,
    /// The key, as PKCS#8.
    pub key: String,
}

impl CertificateAuthority {
    /// Makes an authority.
    ///
    /// # Errors
    /// If the machine has no randomness.
    pub fn new(name: &str) -> anyhow::Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        valid_until(&mut params, SystemTime::now() + VALIDITY);
        Ok(Self(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?))
    }

    /// Returns its own certificate, as PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Issues a certificate for servers and clients with these names or addresses.
    ///
    /// # Errors
    /// If a name is invalid.
    pub fn issue(&self, names: &[&str]) -> anyhow::Result<Certificate> {
        self.issue_until(names, SystemTime::now() + VALIDITY)
    }

    /// Issues a certificate that has expired.
    ///
    /// # Errors
    /// As [`CertificateAuthority::issue`].
    pub fn issue_expired(&self, names: &[&str]) -> anyhow::Result<Certificate> {
        self.issue_until(names, SystemTime::now() - Duration::from_secs(60))
    }

    fn issue_until(&self, names: &[&str], until: SystemTime) -> anyhow::Result<Certificate> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, "daegi");
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        valid_until(&mut params, until);
        let key = KeyPair::generate()?;
        let cert = params.signed_by(&key, &self.0)?;
        Ok(Certificate { cert: cert.pem(), key: key.serialize_pem() })
    }
}

fn valid_until(params: &mut CertificateParams, until: SystemTime) {
    params.not_before = (SystemTime::now() - VALIDITY).into();
    params.not_after = until.into();
}

impl std::fmt::Debug for CertificateAuthority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CertificateAuthority")
    }
}
