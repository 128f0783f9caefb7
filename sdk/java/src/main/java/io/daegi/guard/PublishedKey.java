package io.daegi.guard;

import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigInteger;
import java.security.AlgorithmParameters;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PublicKey;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.ECParameterSpec;
import java.security.spec.ECPoint;
import java.security.spec.ECPublicKeySpec;
import java.security.spec.RSAPublicKeySpec;
import java.security.spec.X509EncodedKeySpec;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Set;

/** A published key: {@code algorithm} is the only one that it verifies, {@code signature} its name in Java. */
record PublishedKey(String algorithm, String signature, PublicKey key) {
    static final Set<String> ALGORITHMS = Set.of("EdDSA", "ES256", "RS256");

    /** Minimum size of an RSA key in bits (RFC 7518). */
    private static final int MIN_RSA_BITS = 2048;
    /** Prefix of the 32 bytes of an Ed25519 key in its X.509 encoding (RFC 8410). */
    private static final byte[] X509 = HexFormat.of().parseHex("302a300506032b6570032100");

    /** Imports a key. Returns null for keys of other types, which the set may contain. */
    static PublishedKey parse(JsonNode published) {
        try {
            PublishedKey key = switch (published.path("kty").asText() + " " + published.path("crv").asText()) {
                case "OKP Ed25519" -> ed25519(bytes(published, "x"));
                case "EC P-256" -> p256(number(published, "x"), number(published, "y"));
                case "RSA " -> rsa(number(published, "n"), number(published, "e"));
                default -> null;
            };
            boolean isOther = key != null && !published.path("alg").asText(key.algorithm).equals(key.algorithm);
            return isOther ? null : key;
        } catch (GeneralSecurityException | IllegalArgumentException unusable) {
            return null;
        }
    }

    private static PublishedKey ed25519(byte[] x) throws GeneralSecurityException {
        byte[] encoded = new byte[X509.length + x.length];
        System.arraycopy(X509, 0, encoded, 0, X509.length);
        System.arraycopy(x, 0, encoded, X509.length, x.length);
        PublicKey key = KeyFactory.getInstance("Ed25519").generatePublic(new X509EncodedKeySpec(encoded));
        return new PublishedKey("EdDSA", "Ed25519", key);
    }

    private static PublishedKey p256(BigInteger x, BigInteger y) throws GeneralSecurityException {
        AlgorithmParameters parameters = AlgorithmParameters.getInstance("EC");
        parameters.init(new ECGenParameterSpec("secp256r1"));
        ECParameterSpec curve = parameters.getParameterSpec(ECParameterSpec.class);
        PublicKey key = KeyFactory.getInstance("EC").generatePublic(new ECPublicKeySpec(new ECPoint(x, y), curve));
        return new PublishedKey("ES256", "SHA256withECDSAinP1363Format", key);
    }

    private static PublishedKey rsa(BigInteger modulus, BigInteger exponent) throws GeneralSecurityException {
        if (modulus.bitLength() < MIN_RSA_BITS) {
            return null;
        }
        PublicKey key = KeyFactory.getInstance("RSA").generatePublic(new RSAPublicKeySpec(modulus, exponent));
        return new PublishedKey("RS256", "SHA256withRSA", key);
    }

    private static BigInteger number(JsonNode published, String name) {
        return new BigInteger(1, bytes(published, name));
    }

    private static byte[] bytes(JsonNode published, String name) {
        return Base64.getUrlDecoder().decode(published.path(name).asText());
    }
}
