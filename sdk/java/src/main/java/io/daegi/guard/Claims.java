package io.daegi.guard;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.Signature;
import java.util.Base64;
import java.util.regex.Pattern;

/** Decodes and validates the claims of a pass. */
final class Claims {
    private static final String ISSUER = "daegi";
    private static final Pattern BASE64URL = Pattern.compile("[A-Za-z0-9_-]+");
    private static final Pattern USER = Pattern.compile("[A-Za-z0-9._~@:+-]{1,128}");
    private static final Pattern LANE = Pattern.compile("(?!standard$)[A-Za-z0-9._~-]{1,32}");
    private static final Pattern UUID = Pattern.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}");

    private Claims() {}

    /** Reads the key id from the JWT header. It is unverified. */
    static String kidOf(String pass) {
        String[] parts = pass.split("\\.", -1);
        JsonNode header = parts.length == 3 ? json(parts[0]) : MissingNode.getInstance();
        if (!PublishedKey.ALGORITHMS.contains(header.path("alg").asText()) || !header.path("kid").isTextual()) {
            throw invalid();
        }
        return header.path("kid").textValue();
    }

    /** Validates signature, issuer, item and times, and returns the entry. Without a key the signature is not verified. */
    static Entry entry(String pass, PublishedKey key, String item, long now, long skew) {
        if (key != null && !isSigned(pass, key)) {
            throw invalid();
        }
        JsonNode claims = json(pass.split("\\.", -1)[1]);
        String audience = text(claims, "aud", Item.PATTERN);
        String user = text(claims, "sub", USER);
        String id = text(claims, "jti", UUID);
        long number = count(claims, "num");
        String lane = claims.hasNonNull("lane") ? text(claims, "lane", LANE) : null;
        long from = Math.max(count(claims, "iat"), claims.hasNonNull("nbf") ? count(claims, "nbf") : 0);
        long until = count(claims, "exp");
        if (!claims.path("iss").asText().equals(ISSUER)) {
            throw invalid();
        }
        if (!audience.equals(item)) {
            throw new RefusedException(Refusal.PASS_OTHER_ITEM);
        }
        if (from > now + skew) {
            throw new RefusedException(Refusal.PASS_NOT_YET_VALID);
        }
        if (until <= now - skew) {
            throw new RefusedException(Refusal.PASS_EXPIRED);
        }
        return new Entry(user, audience, id, number, lane, until, key != null);
    }

    private static boolean isSigned(String pass, PublishedKey key) {
        int end = pass.lastIndexOf('.');
        // The key fixes the algorithm: trusting the header would allow "none" and HS256 forgeries.
        if (!json(pass.substring(0, pass.indexOf('.'))).path("alg").asText().equals(key.algorithm())) {
            return false;
        }
        try {
            Signature signature = Signature.getInstance(key.signature());
            signature.initVerify(key.key());
            signature.update(pass.substring(0, end).getBytes(StandardCharsets.US_ASCII));
            return signature.verify(bytes(pass.substring(end + 1)));
        } catch (GeneralSecurityException | IllegalArgumentException unusable) {
            return false;
        }
    }

    /** Decodes a part of a JWT. Returns a missing node if it is not JSON. */
    private static JsonNode json(String part) {
        try {
            return Json.read(bytes(part));
        } catch (IOException | IllegalArgumentException unusable) {
            return MissingNode.getInstance();
        }
    }

    /** Rejects padding, which Java's decoder accepts and a JWT must not have. */
    private static byte[] bytes(String part) {
        if (!BASE64URL.matcher(part).matches()) {
            throw new IllegalArgumentException("not base64url");
        }
        return Base64.getUrlDecoder().decode(part);
    }

    private static String text(JsonNode claims, String name, Pattern pattern) {
        JsonNode claim = claims.path(name);
        if (!claim.isTextual() || !pattern.matcher(claim.textValue()).matches()) {
            throw invalid();
        }
        return claim.textValue();
    }

    private static long count(JsonNode claims, String name) {
        JsonNode claim = claims.path(name);
        if (!claim.isIntegralNumber() || !claim.canConvertToLong() || claim.longValue() < 0) {
            throw invalid();
        }
        return claim.longValue();
    }

    private static RefusedException invalid() {
        return new RefusedException(Refusal.PASS_INVALID);
    }
}
