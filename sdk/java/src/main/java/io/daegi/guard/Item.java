package io.daegi.guard;

import java.util.regex.Pattern;

/** Syntax of item ids. */
public final class Item {
    static final Pattern PATTERN = Pattern.compile("[A-Za-z0-9._~-]{1,64}");

    private Item() {}

    /** Returns whether this text is a valid item id. */
    public static boolean isId(String text) {
        return text != null && PATTERN.matcher(text).matches();
    }
}
