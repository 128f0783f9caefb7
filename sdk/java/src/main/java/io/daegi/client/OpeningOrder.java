package io.daegi.client;

import com.fasterxml.jackson.annotation.JsonEnumDefaultValue;
import com.fasterxml.jackson.annotation.JsonProperty;

/** How the tickets of the lobby are ordered at the opening. */
public enum OpeningOrder {
    /** In order of arrival. */
    @JsonProperty("arrival")
    ARRIVAL,
    /** In a random order that everyone can recompute. */
    @JsonProperty("draw")
    DRAW,
    /** An order of a newer server. */
    @JsonEnumDefaultValue
    UNKNOWN
}
