package io.daegi.guard;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.PublicKey;
import java.security.Signature;
import java.util.Base64;
import java.util.regex.Pattern;

/** What a pass says, and whether it counts. */
final class Claims {
    private static final String ISSUER = "daegi";
    private static final Pattern BASE64URL = Pattern.compile("[A-Za-z0-9_-]+");
    private static final Pattern USER = Pattern.compile("[A-Za-z0-9._~@:+-]{1,128}");
    private static final Pattern UUID = Pattern.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}");

    private Claims() {}

    /** The id of the key that signed a pass, by its own words. */
    static String kidOf(String pass) {
        String[] parts = pass.split("\\.", -1);
        JsonNode header = parts.length == 3 ? json(parts[0]) : MissingNode.getInstance();
        // The algorithm is ours to say, never the pass's.
        if (!header.path("alg").asText().equals("EdDSA") || !header.path("kid").isTextual()) {
            throw invalid();
        }
        return header.path("kid").textValue();
    }

    /** The entry that a pass is proof of, to this item and now. Without a key its signature is not checked. */
    static Entry entry(String pass, PublicKey key, String item, long now, long skew) {
        if (key != null && !isSigned(pass, key)) {
            throw invalid();
        }
        JsonNode claims = json(pass.split("\\.", -1)[1]);
        String audience = text(claims, "aud", Item.PATTERN);
        String user = text(claims, "sub", USER);
        String id = text(claims, "jti", UUID);
        long number = count(claims, "num");
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
        return new Entry(user, audience, id, number, until, key != null);
    }

    private static boolean isSigned(String pass, PublicKey key) {
        int end = pass.lastIndexOf('.');
        try {
            Signature signature = Signature.getInstance("Ed25519");
            signature.initVerify(key);
            signature.update(pass.substring(0, end).getBytes(StandardCharsets.US_ASCII));
            return signature.verify(bytes(pass.substring(end + 1)));
        } catch (GeneralSecurityException | IllegalArgumentException unusable) {
            return false;
        }
    }

    /** What a part of a JWT is; missing if it is no JSON. */
    private static JsonNode json(String part) {
        try {
            return Json.read(bytes(part));
        } catch (IOException | IllegalArgumentException unusable) {
            return MissingNode.getInstance();
        }
    }

    /** Java's decoder takes padding, which a JWT has not. */
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
