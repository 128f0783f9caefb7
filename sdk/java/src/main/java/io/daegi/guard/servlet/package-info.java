/** The guard as a filter, for every servlet container. */
package io.daegi.guard.servlet;
