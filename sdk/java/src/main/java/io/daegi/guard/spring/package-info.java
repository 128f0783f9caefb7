/** The guard as an annotation, for Spring MVC. */
package io.daegi.guard.spring;
