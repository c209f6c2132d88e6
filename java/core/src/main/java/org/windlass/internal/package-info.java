// SPDX-License-Identifier: Apache-2.0
/**
 * What all packages of the library stand on, and no user sees: the native library, memory and its
 * lifetime, the calls in progress, and arithmetic that several packages share. It imports no other
 * package of the library but {@code org.windlass.error}: dtypes and operations are numbers of the C
 * ABI.
 */
package org.windlass.internal;
