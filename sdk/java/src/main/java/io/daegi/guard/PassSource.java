package io.daegi.guard;

import java.util.Arrays;
import java.util.function.UnaryOperator;

/**
 * Finds the pass of a request and writes the cookie that stores it.
 *
 * <p>Sources, in this order: the header {@code daegi-pass}, the query parameter {@code pass} (as in an item's
 * {@code entryUrl}), the guard's cookie, {@code Authorization: Bearer}. The bearer token is last because a service may use
 * it for its own authentication. If both URL and cookie carry a pass, {@link Guard#authorize} decides.
 *
 * @param inUrl the pass in the URL, or an empty string
 * @param stored the pass in cookie or headers, or an empty string
 */
public record PassSource(String inUrl, String stored) {
    private static final String PARAMETER = "pass=";

    /** Finds the passes of a request for this item. A missing query or header is null. */
    public static PassSource find(String query, UnaryOperator<String> header, String item) {
        String own = text(header.apply("daegi-pass"));
        if (!own.isEmpty()) {
            return new PassSource("", own);
        }
        String inUrl = after(PARAMETER, text(query).split("&"));
        String stored = after(name(item) + "=", text(header.apply("cookie")).split(";"));
        boolean none = inUrl.isEmpty() && stored.isEmpty();
        return new PassSource(inUrl, none ? bearer(text(header.apply("authorization"))) : stored);
    }

    /** Returns the first pass of the request, or an empty string. */
    public String pass() {
        return inUrl.isEmpty() ? stored : inUrl;
    }

    /** Stores a pass in the browser until it expires, unreadable to scripts and other sites. */
    static String cookie(String item, String pass, long seconds, boolean https) {
        String rules = "; Path=/; Max-Age=" + seconds + "; HttpOnly; SameSite=Lax" + (https ? "; Secure" : "");
        return name(item) + "=" + pass + rules;
    }

    /** One cookie per item, because a user may have entries of several items. */
    private static String name(String item) {
        return "daegi-pass-" + item;
    }

    private static String text(String value) {
        return value == null ? "" : value;
    }

    /** A pass contains no characters that need URL escaping. */
    private static String after(String start, String[] pairs) {
        var found = Arrays.stream(pairs).map(String::trim).filter(pair -> pair.startsWith(start)).findFirst();
        return found.map(pair -> pair.substring(start.length())).orElse("");
    }

    private static String bearer(String header) {
        String[] words = header.trim().split(" +");
        return words.length == 2 && words[0].equalsIgnoreCase("bearer") ? words[1] : "";
    }
}
